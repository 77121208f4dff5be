# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of ops on blocks that something has to be done with before they are what the op was for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir


def continue_with(op: Any, index: int, build: Callable[[], Any]) -> None:
    """Builds a value right behind an op, and gives it to those that use one of its results so far.

    What the op itself makes has no sharding any more.
    """
    drop_shardings(op)
    # The uses are noted before there are those of what is built.
    uses = [(use.owner, use.operand_number) for use in op.results[index].uses]
    with ir.InsertionPoint.after(op), op.location:
        value = build()
    for user, number in uses:
        user.operation.operands[number] = value


def drop_shardings(op: Any) -> None:
    """Takes the shardings of its results from an op."""
    if sdy.SHARDING in op.attributes:
        del op.attributes[sdy.SHARDING]
