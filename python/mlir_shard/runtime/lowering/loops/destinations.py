# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Destinations of structured ops, empty tensors and filled ones: each op gets its own.

The host's simplifications merge equal ones. One-shot bufferization then has to find out which of the ops that write to
a merged one may do so in place, which takes it cubic time in their number, and copies the others.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, operations_named

_EMPTY, _FILL = "tensor.empty", "linalg.fill"
_SEGMENTS = "operandSegmentSizes"


def separate(module: Any) -> None:
    """Gives each op of a module that writes to an empty or filled tensor one that no other op uses, in place."""
    for name in (_FILL, _EMPTY):
        for op in operations_named(module, name):
            for result in op.results:
                for use in list(result.uses)[1:]:
                    user, place = use.owner.operation, use.operand_number
                    # What is only read is filled once, and not in each iteration of a loop that reads it.
                    if name == _EMPTY or _is_destination(user, place):
                        with ir.InsertionPoint(user):
                            user.operands[place] = clone_with(op, {}).results[0]


def _is_destination(op: Any, place: int) -> bool:
    """Whether an op writes to an operand."""
    if not op.name.startswith("linalg."):
        return False
    # An op whose numbers of operands are fixed, such as a transpose, has no segments: its destinations are the last.
    inputs = op.attributes[_SEGMENTS][0] if _SEGMENTS in op.attributes else len(op.operands) - len(op.results)
    return bool(place >= inputs)
