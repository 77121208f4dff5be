# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The check that decisions reused for isomorphic ops give the same result as decisions for each op alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import PassFailure

Change = Callable[[Any, bool], None]


def verify_repetition() -> Any:
    """Returns the option `verify-repetition` of a pass or pipeline."""
    return option(
        False,
        "also plan each op separately, and fail if the reused plan of an isomorphic op gives a different result",
    )


def change_verified(op: Any, change: Change) -> None:
    """Changes `op` with decisions reused and a copy of it without; raises PassFailure at the first difference.

    Args:
        op: the `ir.Operation` of a module, or of a function in one, whose module is copied with it.
        change: changes an op in place; its second argument is whether decisions are reused.
    """
    names = {str(one.location): one.name for one in ops_below(op)}
    kept, alone = _copy(op)
    change(alone, False)
    change(op, True)
    numbers: tuple[dict[Any, int], dict[Any, int]] = {}, {}
    differences = [
        (reused, single)
        for reused, single in zip_longest(list(ops_below(op)), list(ops_below(alone)))
        if reused is None or single is None or _text(reused, numbers[0]) != _text(single, numbers[1])
    ]
    if differences:
        # A function differs because an op in it differs.
        inner = (pair for pair in differences if all(one is None or one.name != "func.func" for one in pair))
        reused, single = next(inner, differences[0])
        shown = single or reused
        name = names.get(str(shown.location), shown.name)
        raise PassFailure(
            f"'{name}' op becomes {_shown(reused, single)} with the plan of an isomorphic op, but "
            f"{_shown(single, reused)} with its own: its sharding rule, or a partition rule registered as pure, "
            "depends on properties in which isomorphic ops differ",
            shown.location,
        )
    del kept


def _copy(op: Any) -> tuple[Any, Any]:
    """Copies the module that an op is or is in; returns the copy, which the caller has to keep, and the op in it."""
    if op.name == "builtin.module":
        copy = op.clone().operation
        return copy, copy
    siblings = [one.operation for one in op.parent.regions[0].blocks[0].operations]
    copy = op.parent.operation.clone().operation
    return copy, copy.regions[0].blocks[0].operations[siblings.index(op)].operation


def _text(op: Any, numbers: dict[Any, int]) -> tuple[Any, ...]:
    """Returns the parts of an operation, without its regions' contents; values are numbered in order of appearance."""
    for value in (*op.results, *(one for region in op.regions for block in region.blocks for one in block.arguments)):
        numbers.setdefault(value, len(numbers))
    return (
        op.name,
        str(op.location),
        tuple((name, str(op.attributes[name])) for name in op.attributes),
        tuple(numbers.setdefault(value, len(numbers)) for value in op.operands),
        tuple(str(value.type) for value in op.results),
        tuple(tuple(str(one.type) for one in block.arguments) for region in op.regions for block in region.blocks),
    )


def _shown(op: Any, other: Any) -> str:
    """Returns the name of an op, with the first attribute that differs from that of another op of this name."""
    if op is None:
        return "nothing"
    if other is not None and op.name == other.name:
        for name in op.attributes:
            if name not in other.attributes or op.attributes[name] != other.attributes[name]:
                value = op.attributes[name]
                return f"'{op.name}' with {name} = {value.text if isinstance(value, SdyAttribute) else value}"
    return f"'{op.name}'"
