# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on index values at the current insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_arith = host.dialect("arith")
_EQUAL = 0
_NOT_EQUAL = 1
_LESS = 2
_AT_LEAST = 5


def constant(value: int) -> Any:
    """An index."""
    return _arith.ConstantOp(ir.IndexType.get(), value).result


def add(left: Any, right: Any) -> Any:
    """left + right"""
    return _arith.AddIOp(left, right).result


def subtract(left: Any, right: Any) -> Any:
    """left - right"""
    return _arith.SubIOp(left, right).result


def multiply(left: Any, right: Any) -> Any:
    """left · right"""
    return _arith.MulIOp(left, right).result


def remainder(left: Any, right: Any) -> Any:
    """What division leaves of a value that is not negative."""
    return _arith.RemUIOp(left, right).result


def differ(left: Any, right: Any) -> Any:
    """Whether they are not equal."""
    return _arith.CmpIOp(_NOT_EQUAL, left, right).result


def within(value: Any, size: int) -> Any:
    """Whether 0 <= value < size."""
    above, below = (
        _arith.CmpIOp(_AT_LEAST, value, constant(0)).result,
        _arith.CmpIOp(_LESS, value, constant(size)).result,
    )
    return _arith.AndIOp(above, below).result


def equal(left: Any, right: Any) -> Any:
    """Whether they are equal."""
    return _arith.CmpIOp(_EQUAL, left, right).result


def reaches(value: Any, bound: Any) -> Any:
    """Whether value >= bound."""
    return _arith.CmpIOp(_AT_LEAST, value, bound).result


def least(left: Any, right: Any) -> Any:
    """The lesser one."""
    return _arith.MinSIOp(left, right).result


def clamped(value: Any, most: int) -> Any:
    """The nearest of 0, 1, ... most."""
    return _arith.MaxSIOp(least(value, constant(most)), constant(0)).result


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """One of two values."""
    return _arith.SelectOp(condition, then, otherwise).result


def linear(coordinates: Sequence[Any], sizes: Sequence[int]) -> Any:
    """The row-major position of `coordinates`."""
    if not coordinates:
        return constant(0)
    position = coordinates[0]
    for coordinate, size in zip(coordinates[1:], sizes[1:], strict=True):
        position = add(multiply(position, constant(size)), coordinate)
    return position


def coordinates(position: Any, sizes: Sequence[int]) -> list[Any]:
    """The coordinates at a row-major position that is not negative."""
    found: list[Any] = []
    for size in reversed(sizes):
        found.insert(0, remainder(position, constant(size)))
        position = _arith.DivUIOp(position, constant(size)).result
    return found


def of_integer(value: Any) -> Any:
    """The index of a signless integer, whose sign counts."""
    return _arith.IndexCastOp(ir.IndexType.get(), value).result


def to_integer(value: Any, width: int) -> Any:
    """The index as a signless integer of `width` bits."""
    return _arith.IndexCastOp(ir.IntegerType.get_signless(width), value).result
