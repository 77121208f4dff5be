# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in `.td` files, and errors that point at them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """A file as it was read; `name` is what diagnostics call it."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without line ends."""
        return self.text.split("\n")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source; line and column count from 1."""

    source: Source
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def advanced(self, text: str, offset: int) -> Location:
        """The place `offset` characters into `text`, where `text` stands in the source at this place."""
        before = text[:offset]
        newlines = before.count("\n")
        if newlines:
            return Location(self.source, self.line + newlines, offset - before.rfind("\n"))
        return Location(self.source, self.line, self.column + offset)

    def excerpt(self) -> str:
        """The line of the place, with a caret below the column; empty where there is no such line."""
        if not 1 <= self.line <= len(self.source.lines):
            return ""
        line = self.source.lines[self.line - 1]
        # Tabs are kept before the caret, so that it lines up however wide they are shown.
        indent = "".join("\t" if character == "\t" else " " for character in line[: self.column - 1])
        return f"{line}\n{indent}^"


class LocatedText(str):
    """A string literal that knows where its first character stands; equal to the plain string."""

    location: Location | None

    def __new__(cls, text: str, location: Location | None) -> LocatedText:
        located = super().__new__(cls, text)
        located.location = location
        return located


class OdsError(Exception):
    """A mistake in a `.td` file; its text is a diagnostic with place, line and caret, and notes likewise."""

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes: list[tuple[str, Location]] = []

    def note(self, message: str, location: Location) -> None:
        """Adds where the mistake came from; notes on one place are given once."""
        if (message, location) not in self.notes and location != self.location:
            self.notes.append((message, location))

    def __str__(self) -> str:
        parts = [_diagnostic("error", self.message, self.location)]
        parts += [_diagnostic("note", message, location) for message, location in self.notes]
        return "\n".join(parts)


def _diagnostic(severity: str, message: str, location: Location | None) -> str:
    if location is None:
        return f"{severity}: {message}"
    excerpt = location.excerpt()
    return f"{location}: {severity}: {message}" + (f"\n{excerpt}" if excerpt else "")


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the candidate nearest to `name`, or nothing where none is near."""
    near = difflib.get_close_matches(name, list(candidates), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
