# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits LLVM's unrolling to loops with few iterations, as over a window or the channels of an image.

LLVM unrolls loops with a known number of iterations, vectorized ones too, up to some hundred instructions. Most
vectorized loops do not become faster, and the passes afterwards take two to three times as long. Two kinds do become
faster: a sum along the innermost loop, of which LLVM interleaves several parts, and sums along an outer loop if the
innermost loop has so few elements that registers hold all sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, operations_named_in_post_order

# The maximum number of copies of the innermost body.
_MOST_COPIES: Final = 16
# The bytes of an outer loop's results that registers can hold.
_BYTES_IN_REGISTERS: Final = 256
_FOR, _LOAD, _STORE = "scf.for", "memref.load", "memref.store"
_ANNOTATION: Final = "loop_annotation"
_AS_IT_IS: Final = "#llvm.loop_annotation<unroll = <disable = true>>"
_IN_PARTS: Final = "#llvm.loop_annotation<unroll = <disable = true>, interleave = <count = 4>>"


def limit(module: Any) -> None:
    """Disables unrolling of all other `scf.for` with a known number of iterations, in place."""
    as_it_is, in_parts = (ir.Attribute.parse(one, module.context) for one in (_AS_IT_IS, _IN_PARTS))
    copies: dict[Any, int] = {}
    for op in operations_named_in_post_order(module, _FOR):
        is_innermost = op not in copies
        count = _iterations(op)
        of_op = copies.pop(op, 1) * (_MOST_COPIES + 1 if count is None else count)
        parent = op.parent.operation
        if parent.name == _FOR:
            copies[parent] = max(copies.get(parent, 1), of_op)
        if count is None or of_op <= _MOST_COPIES:
            continue
        if not is_innermost:
            op.attributes[_ANNOTATION] = as_it_is
            continue
        stores = list(operations_named(op, _STORE))
        if stores and not any(_moves(store, op) for store in stores):
            op.attributes[_ANNOTATION] = in_parts
        elif not any(_is_scattered(store) or _is_in_registers(store, op, count) for store in stores):
            op.attributes[_ANNOTATION] = as_it_is


def _is_in_registers(store: Any, loop: Any, count: int) -> bool:
    """Returns whether an outer loop accumulates in the few elements that the innermost loop stores, in registers."""
    type_ = store.operands[0].type
    width = type_.width if isinstance(type_, (ir.IntegerType, ir.FloatType)) else 64
    if count * width // 8 > _BYTES_IN_REGISTERS or not _moves(store, loop):
        return False
    outer = loop.parent.operation
    return bool(outer.name == _FOR and not _moves(store, outer))


def _is_scattered(store: Any) -> bool:
    """Returns whether the position of a store is loaded from memory, so that LLVM does not vectorize the loop."""
    return any(not isinstance(one.owner, ir.Block) and one.owner.operation.name == _LOAD for one in _indices(store))


def _moves(store: Any, loop: Any) -> bool:
    """Returns whether the position of a store differs in each iteration of a loop."""
    variable = loop.regions[0].blocks[0].arguments[0]
    return any(one == variable for one in _indices(store))


def _indices(store: Any) -> Iterator[Any]:
    """Yields the values from which the indices of a store are computed."""
    values = list(store.operands)[2:]
    while values:
        value = values.pop()
        yield value
        if not isinstance(value.owner, ir.Block):
            values += value.owner.operation.operands


def _iterations(op: Any) -> int | None:
    """Returns the number of iterations of a loop; None if unknown."""
    bounds = []
    for operand in list(op.operands)[:3]:
        owner = operand.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
            return None
        bounds.append(int(owner.operation.attributes["value"].value))
    start, stop, step = bounds
    return max(0, -(-(stop - start) // step))
