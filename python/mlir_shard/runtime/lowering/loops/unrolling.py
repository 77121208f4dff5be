# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which loops LLVM may unroll: those of few iterations, as over a window or the channels of an image.

LLVM unrolls loops whose number of iterations is known up to some hundred instructions, also what it has vectorized.
Most vectorized loops get no faster by that, and LLVM takes two to three times as long for what comes after. Two kinds
do get faster: a sum along the innermost loop, of which LLVM interleaves several parts, and sums along an outer loop
where the innermost one goes through so few elements that registers hold all sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named, operations_named_in_post_order

# As often as this the innermost body may be repeated.
_MOST_COPIES: Final = 16
# What registers hold of the results of an outer loop.
_BYTES_IN_REGISTERS: Final = 256
_FOR, _LOAD, _STORE = "scf.for", "memref.load", "memref.store"
_ANNOTATION: Final = "loop_annotation"
_AS_IT_IS: Final = "#llvm.loop_annotation<unroll = <disable = true>>"
_IN_PARTS: Final = "#llvm.loop_annotation<unroll = <disable = true>, interleave = <count = 4>>"


def limit(module: Any) -> None:
    """Has LLVM leave all other `scf.for` of known numbers of iterations as loops, in place."""
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
    """Whether an outer loop adds to the few elements that a store in the innermost loop goes through."""
    type_ = store.operands[0].type
    width = type_.width if isinstance(type_, (ir.IntegerType, ir.FloatType)) else 64
    if count * width // 8 > _BYTES_IN_REGISTERS or not _moves(store, loop):
        return False
    outer = loop.parent.operation
    return bool(outer.name == _FOR and not _moves(store, outer))


def _is_scattered(store: Any) -> bool:
    """Whether the place that a store goes to is read from memory, so that LLVM does not vectorize the loop."""
    return any(not isinstance(one.owner, ir.Block) and one.owner.operation.name == _LOAD for one in _indices(store))


def _moves(store: Any, loop: Any) -> bool:
    """Whether a store goes to another place in each iteration of a loop."""
    variable = loop.regions[0].blocks[0].arguments[0]
    return any(one == variable for one in _indices(store))


def _indices(store: Any) -> Iterator[Any]:
    """The values that the indices of a store are computed from."""
    values = list(store.operands)[2:]
    while values:
        value = values.pop()
        yield value
        if not isinstance(value.owner, ir.Block):
            values += value.owner.operation.operands


def _iterations(op: Any) -> int | None:
    """How many iterations a loop has; None where that is not known."""
    bounds = []
    for operand in list(op.operands)[:3]:
        owner = operand.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
            return None
        bounds.append(int(owner.operation.attributes["value"].value))
    start, stop, step = bounds
    return max(0, -(-(stop - start) // step))
