# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors with their elements converted, as a reduction does it that accumulates in another type than it reads."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_arith = host.dialect("arith")


def convert(value: Any, element_type: Any) -> Any | None:
    """A tensor with elements of another type, at the current insertion point; None where that is not known how.

    Integers without a sign are signed, but for i1, which is 0 or 1. Conversions that lose digits round or cut them.
    """
    source = value.type.element_type
    type_ = ir.RankedTensorType.get(value.type.shape, element_type)
    operation = _operation(source, element_type)
    return None if operation is None else operation(type_, value)


def _operation(source: Any, target: Any) -> Any | None:
    if isinstance(source, ir.IndexType) or isinstance(target, ir.IndexType):
        return _arith.index_cast if all(map(_is_signless_or_index, (source, target))) else None
    if isinstance(source, ir.FloatType) and isinstance(target, ir.FloatType):
        if source.width == target.width:
            return None
        return _arith.extf if source.width < target.width else _arith.truncf
    is_truth = isinstance(source, ir.IntegerType) and source.width == 1
    if _is_signless_or_index(source) and isinstance(target, ir.FloatType):
        return _arith.uitofp if is_truth else _arith.sitofp
    if isinstance(source, ir.FloatType) and _is_signless_or_index(target):
        return _arith.fptosi
    if _is_signless_or_index(source) and _is_signless_or_index(target):
        if source.width > target.width:
            return _arith.trunci
        return _arith.extui if is_truth else _arith.extsi
    return None


def _is_signless_or_index(element_type: Any) -> bool:
    if isinstance(element_type, ir.IntegerType):
        return bool(element_type.is_signless)
    return isinstance(element_type, ir.IndexType)
