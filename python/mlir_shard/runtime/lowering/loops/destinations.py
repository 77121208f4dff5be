# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gives each structured op its own destination, which is an empty or filled tensor.

The host's simplifications merge equal destinations. One-shot bufferization must then find which of the ops may write to
a merged one in place, in time that is cubic in their number, and it copies the others. A merged destination also lives
from the first to the last of these ops.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, operations_named, replace_with

_tensor, _linalg = host.dialect("tensor"), host.dialect("linalg")
_EMPTY, _FILL, _GENERIC = "tensor.empty", "linalg.fill", "linalg.generic"
_INSERT = "tensor.insert_slice"
_VIEWS = ("tensor.collapse_shape", "tensor.expand_shape")
_SEGMENTS = "operandSegmentSizes"


def separate(module: Any) -> None:
    """Gives each op of a module that writes to an empty or filled tensor its own one, just before it, in place."""
    for op in operations_named(module, _GENERIC):
        _fill(op)
    for op in operations_named(module, *_VIEWS):
        _view(op)
    for name in (_FILL, _EMPTY):
        for op in operations_named(module, name):
            for result in op.results:
                uses = list(result.uses)
                # A tensor that is only read is filled once, not in each iteration of a loop that reads it.
                written = [one for one in uses if name == _EMPTY or _is_destination(one)]
                for number, use in enumerate(written, 1):
                    user = use.owner.operation
                    if number == len(uses):
                        op.move_before(user)
                        continue
                    with ir.InsertionPoint(user):
                        user.operands[use.operand_number] = clone_with(op, {}).results[0]


def _view(op: Any) -> None:
    """Replaces a view of an empty or filled tensor by an empty or filled tensor."""
    viewed, type_ = op.operands[0].owner, op.results[0].type
    if isinstance(viewed, ir.Block) or viewed.name not in (_EMPTY, _FILL) or not type_.has_static_shape:
        return
    with ir.InsertionPoint(op), op.location:
        value = _tensor.EmptyOp(type_.shape, type_.element_type).result
        if viewed.name == _FILL:
            value = _linalg.fill(viewed.operands[0], outs=[value])
        replace_with(op, [value])


def _fill(op: Any) -> None:
    """Replaces a generic that writes one value to all elements by a fill."""
    (block,) = op.regions[0].blocks
    (first, *more) = [one.operation for one in block.operations]
    if more or len(op.operands) != 1 or first.operands[0] in list(block.arguments):
        return
    with ir.InsertionPoint(op), op.location:
        replace_with(op, [_linalg.fill(first.operands[0], outs=[op.operands[0]])])


def _is_destination(use: Any) -> bool:
    """Returns whether the op of a use writes to the value."""
    op = use.owner.operation
    if op.name == _INSERT:
        return bool(use.operand_number == 1)
    if not op.name.startswith("linalg."):
        return False
    # An op with a fixed number of operands, such as a transpose, has no segments: its destinations are the last.
    inputs = op.attributes[_SEGMENTS][0] if _SEGMENTS in op.attributes else len(op.operands) - len(op.results)
    return bool(use.operand_number >= inputs)
