# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of tensors without dimensions in branches and loops, whose memory one-shot bufferization mistakes."""

from __future__ import annotations

from typing import Any, Final

from mlir_shard import host
from mlir_shard.ir.editing import operations_named, ops_below, replace_with

_tensor = host.dialect("tensor")
_BRANCHING: Final = ("scf.if", "scf.index_switch")
_LOOPS: Final = ("scf.for", "scf.while")
_VIEW: Final = "tensor.expand_shape"


def separate(module: Any) -> None:
    """Makes tensors of their own of the views that give dimensions to a tensor without, in place: of those in branches,
    and of those that a loop carries on.

    One-shot bufferization looks up what memory a branch or the body of a loop will yield before it is there, and takes
    that of such a view to have an unknown layout. Where the branch before yields a slice, or a loop begins with one, it
    then does not cast that to the layout of both.
    """
    views = [op for one in operations_named(module, *_BRANCHING) for op in ops_below(one)]
    views += [one for loop in operations_named(module, *_LOOPS) for one in _yielded(loop)]
    # Branches may be in others, and a view be yielded twice.
    for op in dict.fromkeys(views):
        if op.name == _VIEW and op.operands[0].type.rank == 0:
            with op.location, host.ir.InsertionPoint(op):
                element = _tensor.ExtractOp(op.operands[0], []).result
                value = _tensor.FromElementsOp(op.results[0].type, [element]).result
            replace_with(op, [value])


def _yielded(loop: Any) -> list[Any]:
    """The operations whose results the regions of a loop end in."""
    values = [value for region in loop.regions for value in list(region.blocks[0].operations)[-1].operands]
    return [value.owner for value in values if not isinstance(value.owner, host.ir.Block)]
