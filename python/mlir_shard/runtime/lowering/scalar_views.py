# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces views of rank-0 tensors in branches and loops, whose layout one-shot bufferization infers wrongly."""

from __future__ import annotations

from typing import Any, Final

from mlir_shard import host
from mlir_shard.ir.editing import operations_named, ops_below, replace_with

_tensor = host.dialect("tensor")
_BRANCHING: Final = ("scf.if", "scf.index_switch")
_LOOPS: Final = ("scf.for", "scf.while")
_VIEW: Final = "tensor.expand_shape"


def separate(module: Any) -> None:
    """Replaces expansions of rank-0 tensors in branches, and those that loops yield, by new tensors, in place.

    One-shot bufferization infers the type of the memory that a branch or loop body yields before it is built, and
    assumes an unknown layout for such a view. If the other branch yields a slice, or a loop starts with one, it then
    does not cast the slice to the common layout.
    """
    views = [op for one in operations_named(module, *_BRANCHING) for op in ops_below(one)]
    views += [one for loop in operations_named(module, *_LOOPS) for one in _yielded(loop)]
    # Branches may be nested, and a view may be yielded twice.
    for op in dict.fromkeys(views):
        if op.name == _VIEW and op.operands[0].type.rank == 0:
            with op.location, host.ir.InsertionPoint(op):
                element = _tensor.ExtractOp(op.operands[0], []).result
                value = _tensor.FromElementsOp(op.results[0].type, [element]).result
            replace_with(op, [value])


def _yielded(loop: Any) -> list[Any]:
    """Returns the operations whose results the terminators of a loop's regions yield."""
    values = [value for region in loop.regions for value in list(region.blocks[0].operations)[-1].operands]
    return [value.owner for value in values if not isinstance(value.owner, host.ir.Block)]
