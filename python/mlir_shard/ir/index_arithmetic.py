# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builders of arithmetic on index values at the current insertion point.

The host's wrappers of these operations take several times as long as their creation by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir

# The numbers of the predicates of `arith.cmpi`.
_EQUAL = 0
_NOT_EQUAL = 1
_LESS = 2
_AT_LEAST = 5


def constant(value: int) -> Any:
    """Returns an index constant."""
    type_ = ir.IndexType.get()
    return constant_of(ir.IntegerAttr.get(type_, value))


def constant_of(attribute: Any) -> Any:
    """Returns an `arith.constant` of a typed attribute."""
    return ir.Operation.create("arith.constant", [attribute.type], attributes={"value": attribute}).results[0]


def _created(name: str, *operands: Any) -> Any:
    """Creates an operation of `arith` whose result has the type of its last operand; returns the result."""
    return ir.Operation.create(f"arith.{name}", [operands[-1].type], operands).results[0]


def _compared(predicate: int, left: Any, right: Any) -> Any:
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    boolean = ir.IntegerType.get_signless(1)
    return ir.Operation.create("arith.cmpi", [boolean], [left, right], {"predicate": number}).results[0]


def add(left: Any, right: Any) -> Any:
    """Returns left + right."""
    return _created("addi", left, right)


def subtract(left: Any, right: Any) -> Any:
    """Returns left - right."""
    return _created("subi", left, right)


def multiply(left: Any, right: Any) -> Any:
    """Returns left · right."""
    return _created("muli", left, right)


def quotient(left: Any, right: Any) -> Any:
    """Returns left / right, rounded down. Neither may be negative."""
    return _created("divui", left, right)


def remainder(left: Any, right: Any) -> Any:
    """Returns the remainder of the division of a value that is not negative."""
    return _created("remui", left, right)


def differ(left: Any, right: Any) -> Any:
    """Returns whether two values differ."""
    return _compared(_NOT_EQUAL, left, right)


def within(value: Any, size: int) -> Any:
    """Returns whether 0 <= value < size."""
    above, below = _compared(_AT_LEAST, value, constant(0)), _compared(_LESS, value, constant(size))
    return _created("andi", above, below)


def equal(left: Any, right: Any) -> Any:
    """Returns whether two values are equal."""
    return _compared(_EQUAL, left, right)


def reaches(value: Any, bound: Any) -> Any:
    """Returns whether value >= bound."""
    return _compared(_AT_LEAST, value, bound)


def least(left: Any, right: Any) -> Any:
    """Returns the lesser of two values."""
    return _created("minsi", left, right)


def clamped(value: Any, most: int) -> Any:
    """Returns the value clamped to the range from 0 to `most`."""
    return _created("maxsi", least(value, constant(most)), constant(0))


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Returns `then` if the condition holds, else `otherwise`."""
    return _created("select", condition, then, otherwise)


def linear(coordinates: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Returns the row-major position of `coordinates`."""
    if not coordinates:
        return constant(0)
    position = coordinates[0]
    for coordinate, size in zip(coordinates[1:], sizes[1:], strict=True):
        position = add(multiply(position, constant(size)), coordinate)
    return position


def coordinates(position: Any, sizes: Sequence[int]) -> list[Any]:
    """Returns the coordinates at a row-major position that is not negative."""
    found: list[Any] = []
    for size in reversed(sizes):
        found.insert(0, remainder(position, constant(size)))
        position = quotient(position, constant(size))
    return found


def of_integer(value: Any) -> Any:
    """Converts a signless integer, which is sign-extended, to an index."""
    return ir.Operation.create("arith.index_cast", [ir.IndexType.get()], [value]).results[0]


def to_integer(value: Any, width: int) -> Any:
    """Converts an index to a signless integer of `width` bits."""
    return ir.Operation.create("arith.index_cast", [ir.IntegerType.get_signless(width)], [value]).results[0]
