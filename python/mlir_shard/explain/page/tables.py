# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables in which each distinct value of a program is written once and referred to by its row."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from mlir_shard.explain.places import Place

_Key = TypeVar("_Key", bound=Hashable)


class Table(Generic[_Key]):
    """The rows of distinct values, each made by a function for the first occurrence of the value.

    Attributes:
        rows: the rows in the types of JSON.
    """

    def __init__(self, made: Callable[[_Key], Any]) -> None:
        self.rows: list[Any] = []
        self._made = made
        self._known: dict[_Key, int] = {}

    def row(self, thing: _Key) -> int:
        """Returns the row of a value."""
        known = self._known.get(thing)
        if known is None:
            # The row of a value may refer to rows that are made for it.
            made = self._made(thing)
            known = self._known[thing] = len(self.rows)
            self.rows.append(made)
        return known


class Places:
    """A table of texts and one of places: file, line, column, name and the row of the place of the call, -1 without
    a call."""

    def __init__(self) -> None:
        self.texts: Table[str] = Table(lambda text: text)
        self.places: Table[Place] = Table(self._made)

    def _made(self, place: Place) -> list[int]:
        text = self.texts.row
        around = -1 if place.called_from is None else self.places.row(place.called_from)
        return [text(place.file), place.line, place.column, text(place.name), around]
