# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a sharded sum begins with, so that it is counted once for all devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.rules.partition import Blocks, is_everywhere

_arith = dialect("arith")


def count_once(op: Any, operands: Mapping[int, int], blocks: Blocks) -> None:
    """Of the operands with these numbers all but the first device of a group along the reduced axes take a number that
    changes nothing."""
    for number, neutral in operands.items():
        initial = op.operands[number]
        if is_everywhere(initial, neutral):
            continue
        with ir.InsertionPoint(op), op.location:
            index = blocks.device_index(blocks.reduction_axes)
            zero = _arith.ConstantOp(index.type, ir.IntegerAttr.get(index.type, 0)).result
            first = _arith.CmpIOp(_arith.CmpIPredicate.eq, index, zero).result
            op.operands[number] = _arith.SelectOp(first, initial, _splat(initial.type, neutral)).result


def _splat(type_: Any, number: int) -> Any:
    element = type_.element_type
    is_float = isinstance(element, ir.FloatType)
    value = ir.FloatAttr.get(element, float(number)) if is_float else ir.IntegerAttr.get(element, number)
    return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, value)).result
