# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation that a collective of a local program is there for."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.transforms.spmdize.communication_reading import COLLECTIVES

_REDUCING = ("all_reduce", "reduce", "reduce_scatter")
# What stands between collectives and the operations they serve: it moves data within a device.
_LOCAL_MOVES = frozenset(
    {
        "shard.all_slice",
        "stablehlo.convert",
        "stablehlo.dynamic_slice",
        "stablehlo.pad",
        "stablehlo.reshape",
        "stablehlo.slice",
        "stablehlo.transpose",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.insert_slice",
    }
)


def served_op(collective: Any) -> Any:
    """The op whose partial results a reduction completes, or else the first that uses what the collective brings.

    Other collectives on the way, and what was made at the same place to move data within a device, are passed over. A
    reduction of what is an argument of a function or region serves the op that the region is of.
    """
    if collective.name.partition(".")[2] in _REDUCING:
        return _definer(collective)
    return _user(collective)


def _definer(collective: Any) -> Any:
    op = collective
    while True:
        owner = op.operands[0].owner
        if isinstance(owner, ir.Block):
            return owner.owner.operation
        op = owner.operation
        if not _is_on_the_way(op, collective):
            return op


def _user(collective: Any) -> Any:
    op = collective
    while True:
        users = [use.owner.operation for result in op.results for use in result.uses]
        if not users:
            return op
        # Uses are listed from the last that was made.
        op = users[-1]
        if not _is_on_the_way(op, collective):
            return op


def _is_on_the_way(op: Any, collective: Any) -> bool:
    return op.name in COLLECTIVES or (op.name in _LOCAL_MOVES and op.location == collective.location)
