# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes the peak memory of a call of a program on buffers from its allocations and deallocations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from mlir_shard.host import ir
from mlir_shard.ir.editing import functions
from mlir_shard.ir.values import element_size

# Ops whose first result is a view of their first operand.
_VIEWS: Final = frozenset(
    f"memref.{name}"
    for name in ("cast", "collapse_shape", "expand_shape", "extract_strided_metadata", "reinterpret_cast", "subview")
)


class _NotStaticError(Exception):
    """The error that a program's allocations depend on its inputs, or cannot be analyzed."""


@dataclass(frozen=True, slots=True)
class _Memory:
    """The bytes that a part of a program has allocated: at its peak and at its end."""

    most: int
    left: int


def peak_bytes(module: Any, entry: str) -> int | None:
    """Returns the peak bytes of the arguments and the allocations of a function.

    Constants and internal memory of libraries are not counted. Returns None if buffers have a dynamic size or elements
    of unknown size, or if functions have several blocks.
    """
    found = functions(module)
    try:
        arguments = sum(_bytes(one) for one in found[entry].attributes["function_type"].value.inputs)
        return arguments + _OfFunctions(found).of_call(entry).most
    except _NotStaticError:
        return None


class _OfFunctions:
    def __init__(self, found: Mapping[str, Any]) -> None:
        self._functions = found
        # The functions whose memory is known; None while that of a function is computed.
        self._known: dict[str, _Memory | None] = {}

    def of_call(self, name: str) -> _Memory:
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._of_blocks(self._functions[name].regions[0])
        found = self._known[name]
        if found is None:
            # The function calls itself, as often as its arguments decide.
            raise _NotStaticError
        return found

    def _of_blocks(self, region: Any) -> _Memory:
        if len(region.blocks) > 1:
            raise _NotStaticError
        held = most = 0
        for block in region.blocks:
            for child in block.operations:
                op = child.operation
                if op.name == "memref.alloc":
                    held += _bytes(op.results[0].type)
                elif op.name == "memref.dealloc":
                    held -= _bytes(_viewed(op.operands[0]).type)
                elif op.name == "func.call" or len(op.regions):
                    inner = self._of_inner(op)
                    most = max(most, held + inner.most)
                    held += inner.left
                most = max(most, held)
        return _Memory(most, held)

    def _of_inner(self, op: Any) -> _Memory:
        if op.name == "func.call":
            return self.of_call(op.attributes["callee"].value)
        if op.name.startswith("linalg."):
            return _Memory(0, 0)
        inside = [self._of_blocks(region) for region in op.regions]
        # Without results, the branch that frees the most is decisive.
        left = (max if len(op.results) else min)(one.left for one in inside)
        return _Memory(max(one.most for one in inside), left)


def _viewed(value: Any) -> Any:
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _VIEWS:
        value = value.owner.operation.operands[0]
    return value


def _bytes(type_: Any) -> int:
    if not isinstance(type_, ir.ShapedType):
        return 0
    size = element_size(type_)
    if size is None or not type_.has_static_shape:
        raise _NotStaticError
    return prod(type_.shape) * size
