# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One communicator for each set of axes, made when a function is entered.

`convert-shard-to-mpi` splits the world before every collective and frees nothing, and MPICH has some two thousand
communicators: a program with more collectives than that, or with one in a loop, would end there.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir

_SPLIT = "mpi.comm_split"
# What the colour and the key of a split are computed by.
_FROM = frozenset({"mpi.comm_world", "mpi.comm_rank"})
_BY = ("affine.", "arith.")


def share(module: Any) -> None:
    """Moves the splits in each function of a module to its entry and merges equal ones."""
    for op in module.operation.regions[0].blocks[0].operations:
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks):
            _share_in(op.operation)


def _share_in(function: Any) -> None:
    splits: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == _SPLIT:
            splits.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    entry = _Entry(function.regions[0].blocks[0])
    for split in splits:
        copy = entry.copy(split)
        if copy is not None:
            for old, new in zip(split.results, copy.results, strict=True):
                old.replace_all_uses_with(new)
            split.erase()


class _Entry:
    """The operations copied to the beginning of a function, each once."""

    def __init__(self, block: Any) -> None:
        self._before = block.operations[0]
        self._copies: dict[Any, Any] = {}

    def copy(self, op: Any) -> Any | None:
        """The copy of an operation and of all it depends on; None where that is not known at the entry."""
        sources: list[Any] = []
        for operand in op.operands:
            source = self._copied_value(operand)
            if source is None:
                return None
            sources.append(source)
        key = (op.name, str(op.attributes), tuple(str(result.type) for result in op.results), tuple(sources))
        if key not in self._copies:
            with ir.InsertionPoint(self._before):
                copied = op.clone().operation
            for index, source in enumerate(sources):
                copied.operands[index] = source
            self._copies[key] = copied
        return self._copies[key]

    def _copied_value(self, value: Any) -> Any | None:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return None
        owner = owner.operation
        if owner.name not in _FROM and not owner.name.startswith(_BY):
            return None
        copied = self.copy(owner)
        return None if copied is None else copied.results[ir.OpResult(value).result_number]
