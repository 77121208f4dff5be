# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor with something else where its elements are beyond bounds that are known when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import dialect, ir

_arith, _linalg, _tensor = dialect("arith"), dialect("linalg"), dialect("tensor")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Elements from `begin`, or the first where that is None, up to `end` along a dimension: values of type `index`."""

    dim: int
    begin: Any
    end: Any


def is_before(loop: int, end: Any) -> Any:
    """Whether the iteration of a loop, in the body of whose op this is built, is before an `index` value."""
    return _arith.CmpIOp(_arith.CmpIPredicate.slt, _linalg.IndexOp(loop).result, end).result


def inside_bounds(value: Any, bounds: Sequence[Bounds], filling: Any) -> Any:
    """The tensor with a scalar in place of elements out of bounds, built at the current insertion point."""
    type_ = value.type
    element, rank = type_.element_type, type_.rank
    empty = _tensor.EmptyOp(list(type_.shape), element, encoding=type_.encoding).result
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    maps, loops = ir.ArrayAttr.get([identity] * 2), ir.ArrayAttr.get([parallel] * rank)
    op = _linalg.GenericOp([type_], [value], [empty], maps, loops)
    location = ir.Location.current
    block = op.operation.regions[0].blocks.append(element, element, arg_locs=[location] * 2)
    with ir.InsertionPoint(block):
        chosen = block.arguments[0]
        for one in bounds:
            chosen = _arith.SelectOp(is_before(one.dim, one.end), chosen, filling).result
            if one.begin is not None:
                chosen = _arith.SelectOp(is_before(one.dim, one.begin), filling, chosen).result
        _linalg.YieldOp([chosen])
    return op.operation.results[0]
