# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which device of a group a collective names: a root, a destination or a source, by its in-group multi-index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import index_arithmetic as index

_cf = host.dialect("cf")


def axes_of(op: Any) -> tuple[int, ...]:
    """The axes that an operation names, with those of size 1."""
    return tuple(op.attributes["grid_axes"]) if "grid_axes" in op.attributes else ()


def named(op: Any, attribute: str) -> list[int | None] | None:
    """The multi-index along the axes of the operation, None for what is known only at run time; None if not given."""
    if attribute not in op.attributes:
        return None
    return [None if number == shard.DYNAMIC else number for number in op.attributes[attribute]]


def coordinates(op: Any, attribute: str, shape: Sequence[int]) -> list[Any]:
    """The multi-index without axes of size 1, as values; the program ends at run time where one is out of range."""
    numbers = named(op, attribute) or []
    dynamic = iter(list(op.operands)[1:])
    found: list[Any] = []
    for axis, number in zip(axes_of(op), numbers, strict=True):
        value = index.constant(number) if number is not None else next(dynamic)
        if number is None:
            size = shape[axis]
            within = index.within(value, size)
            demand(within, op, f"the {attribute} of '{op.name}' is not in 0..{size - 1} along the grid axis {axis}")
        if shape[axis] != 1:
            found.append(value)
    return found


def demand(condition: Any, op: Any, message: str) -> None:
    """Ends the program at run time with a message, and where in the text it comes from, unless a condition holds."""
    _cf.AssertOp(condition, ir.StringAttr.get(str(diagnostic.at("error", message, op.location))))
