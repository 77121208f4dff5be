# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of tensors without dimensions in branches, whose memory one-shot bufferization mistakes."""

from __future__ import annotations

from typing import Any, Final

from mlir_shard import host
from mlir_shard.ir.editing import operations_named, ops_below, replace_with

_tensor = host.dialect("tensor")
_BRANCHING: Final = ("scf.if", "scf.index_switch")
_VIEW: Final = "tensor.expand_shape"


def separate(module: Any) -> None:
    """Makes tensors of their own of the views in branches that give dimensions to a tensor without, in place.

    One-shot bufferization looks up what memory a branch will yield before it is there, and takes that of such a view to
    have an unknown layout. Where the branch before yields a slice, it then does not cast that to the layout of both.
    """
    for branching in operations_named(module, *_BRANCHING):
        for op in list(ops_below(branching)):
            if op.name == _VIEW and op.operands[0].type.rank == 0:
                with op.location, host.ir.InsertionPoint(op):
                    element = _tensor.ExtractOp(op.operands[0], []).result
                    value = _tensor.FromElementsOp(op.results[0].type, [element]).result
                replace_with(op, [value])
