# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of operations before and after a pass, for comparison with the `Changes` that the pass returns."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.registry import Changes

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_name = ctypes.pythonapi.PyCapsule_GetName
_name.restype = ctypes.c_char_p
_name.argtypes = [ctypes.py_object]


def address(op: Any) -> int:
    """Returns the address of an operation, by which operations that compare equal are distinguished."""
    capsule = op.operation._CAPIPtr
    return int(_pointer(capsule, _name(capsule)))


@dataclass(frozen=True)
class _Operand:
    """A value: the block or operation that defines it, its number there, and its type."""

    definer: int
    number: int
    type: Any


@dataclass(frozen=True)
class _Contents:
    name: str
    operands: tuple[_Operand, ...]
    results: tuple[Any, ...]
    blocks: tuple[tuple[tuple[int, tuple[Any, ...]], ...], ...]
    attributes: tuple[tuple[str, Any], ...]


def _contents(op: Any) -> _Contents:
    blocks = [
        tuple((hash(block), tuple(argument.type for argument in block.arguments)) for block in region)
        for region in op.regions
    ]
    return _Contents(
        op.name,
        tuple(map(_operand, op.operands)),
        tuple(result.type for result in op.results),
        tuple(blocks),
        tuple((name, op.attributes[name]) for name in op.attributes),
    )


_SIGNATURE = ("arg_attrs", "res_attrs")


def _without(contents: _Contents, changes: Changes) -> list[tuple[str, Any]]:
    """Returns the attributes except those that may have changed everywhere."""
    found = []
    for name, attribute in contents.attributes:
        if changes.everywhere and contents.name == "func.func" and name in _SIGNATURE:
            sides = [{one.name: one.attr for one in each if one.name not in changes.everywhere} for each in attribute]
            # A function without attributes on this side lacks the array.
            found += [(name, sides)] if any(sides) else []
        elif name not in changes.everywhere:
            found.append((name, attribute))
    return found


def _operand(value: Any) -> _Operand:
    if isinstance(value.owner, ir.Block):
        return _Operand(hash(value.owner), ir.BlockArgument(value).arg_number, value.type)
    return _Operand(address(value.owner), ir.OpResult(value).result_number, value.type)


class Snapshot:
    """The contents of an operation and of all operations in it at one time."""

    def __init__(self, root: Any) -> None:
        self._contents = {address(op): _contents(op) for op in _all(root)}
        self._orders = dict(_orders(root))

    def unnamed(self, root: Any, changes: Changes) -> Iterator[str]:
        """Yields the changes in the operation since the snapshot that are not among `changes`."""
        made, moved, attributed = (set(map(address, ops)) for ops in (changes.ops, changes.moved, changes.attributed))
        values = made | {hash(block) for op in changes.ops for region in op.regions for block in region}
        covered = {address(inner) for op in (*changes.ops, *changes.moved) for inner in _all(op)}

        def is_named(old: _Operand | None, new: _Operand | None) -> bool:
            # A use of a new value is covered by the change that made the value.
            if old == new or (old is not None and new is not None and new.definer in values):
                return True
            return old is not None and new is not None and new.definer in moved and old.type == new.type

        for op in _all(root):
            where = address(op)
            if op.name in changes.without:
                yield f"is there: {op}"
            if where in covered:
                continue
            now, before = _contents(op), self._contents.get(where)
            if before is None or before.name != now.name:
                yield f"made: {op}"
                continue
            if not all(itertools.starmap(is_named, itertools.zip_longest(before.operands, now.operands))):
                yield f"other operands: {op}"
            if (before.results, before.blocks) != (now.results, now.blocks):
                yield f"other types or blocks: {op}"
            if _without(before, changes) != _without(now, changes) and where not in attributed:
                yield f"other attributes: {op}"
        for analyze, result in changes.analyses.items():
            if analyze(root) != result:
                yield f"another result of {analyze.__name__}"
        for block, now_in in _orders(root):
            # A new block belongs to a new operation.
            before_in = self._orders.get(block, now_in)
            staying = set(now_in) - covered
            if [one for one in before_in if one in staying] != [one for one in now_in if one not in covered]:
                yield "moved"


def _all(root: Any) -> Iterator[Any]:
    yield root.operation
    yield from ops_below(root)


def _orders(root: Any) -> Iterator[tuple[int, list[int]]]:
    """Yields the operations of each block."""
    for op in _all(root):
        for region in op.regions:
            for block in region:
                yield hash(block), [address(one) for one in block.operations]
