# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies results of called functions that may be in the same memory, so that each has its own.

One-shot bufferization analyzes which results of a call may alias an argument, but not whether two results alias the
same value: a caller that writes to one in place would overwrite the other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, terminator

_bufferization = host.dialect("bufferization")
# Ops whose results do not alias their operands. Results of linalg ops alias only destinations, see `_sources`.
_NEW: Final = frozenset({"arith.constant", "tensor.empty", "tensor.from_elements", "tensor.generate", "tensor.splat"})


def separate(module: Any, entry: str) -> None:
    """Copies results of functions other than the entry if they may alias another result of the function, in place."""
    for name, function in functions(module).items():
        if name != entry and len(function.regions[0].blocks) == 1:
            _separate(terminator(function))


def _separate(last: Any) -> None:
    seen: set[Any] = set()
    for index, value in enumerate(last.operands):
        if not isinstance(value.type, ir.RankedTensorType):
            continue
        sources: set[Any] = set()
        _collect(value, sources)
        if sources.isdisjoint(seen):
            seen |= sources
            continue
        with ir.InsertionPoint(last), last.location:
            last.operands[index] = _bufferization.AllocTensorOp(value.type, [], copy=value).result


def _collect(value: Any, sources: set[Any]) -> None:
    """Adds a tensor, and the tensors that it may alias, to `sources`."""
    pending = [value]
    while pending:
        one = pending.pop()
        if one in sources or not isinstance(one.type, ir.RankedTensorType):
            continue
        sources.add(one)
        if not isinstance(one.owner, ir.Block) and one.owner.operation.name not in _NEW:
            pending += _sources(one.owner.operation)


def _sources(op: Any) -> Collection[Any]:
    if op.name.startswith("linalg."):
        return list(op.operands)[-len(op.results) :]
    yielded = (block.operations[len(block.operations) - 1] for region in op.regions for block in region.blocks)
    return [*op.operands, *(value for last in yielded for value in last.operands)]
