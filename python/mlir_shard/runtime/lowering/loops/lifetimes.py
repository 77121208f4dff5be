# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shortens lifetimes of buffers: memory is allocated just before its first use and freed after its last, in its block.

Upstream's `optimize-allocation-liveness` does not track the addresses that are passed to library calls.
"""

from __future__ import annotations

from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.ir.editing import op_in_block, operations_named

_ALLOCATION, _DEALLOCATION = "memref.alloc", "memref.dealloc"
_ADDRESS: Final = "memref.extract_aligned_pointer_as_index"
# Ops whose results are addresses if an operand is one.
_OF_ADDRESSES: Final = frozenset(
    {"arith.addi", "arith.muli", "arith.index_cast", "arith.select", "llvm.inttoptr", "llvm.getelementptr"}
    | {_ADDRESS, "builtin.unrealized_conversion_cast"}
)
_ENDS: Final = frozenset({"func.return", "scf.condition", "scf.yield"})
_CALLS: Final = ("func.call", "llvm.call")
# The prefix of nonblocking calls, whose messages are in flight until their request is waited for.
_STARTED: Final = "MPI_I"


def shorten(module: Any) -> None:
    """Moves allocations before their first use, and deallocations after the last use, in place."""
    for op in operations_named(module, _ALLOCATION):
        first = _first_use(op)
        if first is not None:
            op.move_before(first)
    for op in operations_named(module, _DEALLOCATION):
        allocation = op.operands[0].owner
        if isinstance(allocation, ir.Block) or allocation.operation.block != op.block:
            continue
        if allocation.operation.name == _ALLOCATION:
            last = _last_use(allocation.operation, op)
            if last is not None:
                op.move_after(last)


def _first_use(allocation: Any) -> Any | None:
    """Returns the first op of the allocation's block with a use of the memory, or None."""
    block = allocation.block
    first = None
    for use in allocation.results[0].uses:
        at = op_in_block(use.owner.operation, block)
        if at is not None and (first is None or at.is_before_in_block(first)):
            first = at
    return first


def _last_use(allocation: Any, deallocation: Any) -> Any | None:
    """Returns the last op of the deallocation's block with a use of the memory; None if it is unknown."""
    block = deallocation.block
    last = allocation
    seen, values = {allocation.results[0]}, [allocation.results[0]]
    while values:
        for use in values.pop().uses:
            op = use.owner.operation
            if op.name == _DEALLOCATION:
                # The deallocation of the memory or of a request, which has been waited for.
                continue
            if len(op.successors):
                return None
            made = [*op.results, *_results_of_parent(op)] if _passes_on(op) else []
            if op.name in _CALLS and _callee(op).startswith(_STARTED):
                # The memory is in use until the request, the last argument, is waited for.
                made.append(_allocated(op.operands[len(op.operands) - 1]))
            for one in made:
                if one not in seen:
                    seen.add(one)
                    values.append(one)
            at = op_in_block(op, block)
            if at is None:
                return None
            if last.is_before_in_block(at):
                last = at
    return None if last.name in _ENDS else last


def _allocated(address: Any) -> Any:
    """Returns the memory that an address was computed from."""
    while not isinstance(address.owner, ir.Block) and address.owner.operation.name in _OF_ADDRESSES:
        address = address.owner.operation.operands[0]
    return address


def _callee(op: Any) -> str:
    return str(op.attributes["callee"].value) if "callee" in op.attributes else ""


def _passes_on(op: Any) -> bool:
    """Returns whether results of an op, or of its parent, may refer to the memory of its operands."""
    return op.name in _OF_ADDRESSES or any(isinstance(one.type, ir.MemRefType) for one in op.operands)


def _results_of_parent(op: Any) -> list[Any]:
    """Returns the values to which a terminator may pass its operands."""
    parent = op.parent
    if parent is None or op.name not in _ENDS:
        return []
    outer = parent.operation
    regions = [block for region in outer.regions for block in region.blocks]
    return [*outer.results, *(one for block in regions for one in block.arguments)]
