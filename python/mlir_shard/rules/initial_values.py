# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a sharded reduction begins with, so that it is counted once for all devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import dialect, ir
from mlir_shard.rules.partition import Blocks, is_everywhere
from mlir_shard.rules.reduction import combiners_of, neutral_number

_arith = dialect("arith")


def neutral_initial_values(op: Any, first: int) -> dict[int, float]:
    """What is neutral in place of the initial values that make a difference if they are combined several times.

    Args:
        first: the number of the operand that is the initial value of the first result.

    Returns:
        For such an operand, by its number, what is neutral; nothing if it is not known what all results are reduced
        with.
    """
    combiners = combiners_of(op)
    if None in combiners:
        return {}
    found = {}
    for number, combiner in enumerate(combiners, first):
        if combiner is not None and not combiner.is_idempotent:
            neutral = neutral_number(combiner, op.operands[number].type.element_type)
            if neutral is not None:
                found[number] = neutral
    return found


def count_once(op: Any, operands: Mapping[int, float], axes: Sequence[int], blocks: Blocks) -> None:
    """Gives an op operands of which all devices but the first along grid axes have a number instead of the value.

    Args:
        operands: the numbers of the operands, with those that take their places.
    """
    for number, neutral in operands.items():
        value = op.operands[number]
        if not is_everywhere(value, neutral):
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = _on_first_device(op, value, neutral, axes, blocks)


def _on_first_device(op: Any, value: Any, otherwise: float, axes: Sequence[int], blocks: Blocks) -> Any:
    if op.name.startswith("stablehlo."):
        flag = blocks.entry(axes, lambda position: int(position == 0), stablehlo.boolean())
        return stablehlo.select_all(flag, value, otherwise)
    index = blocks.device_index(axes)
    zero = _arith.ConstantOp(index.type, ir.IntegerAttr.get(index.type, 0)).result
    first = _arith.CmpIOp(_arith.CmpIPredicate.eq, index, zero).result
    number = stablehlo.element(value.type.element_type, otherwise)
    other = _arith.ConstantOp(value.type, ir.DenseElementsAttr.get_splat(value.type, number)).result
    return _arith.SelectOp(first, value, other).result
