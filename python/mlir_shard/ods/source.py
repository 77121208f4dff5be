# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Locations in `.td` files, and errors that refer to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """A file as it was read; `name` is its name in diagnostics."""

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
        """Returns the location `offset` characters into `text`, if `text` is in the source at this location."""
        before = text[:offset]
        newlines = before.count("\n")
        if newlines:
            return Location(self.source, self.line + newlines, offset - before.rfind("\n"))
        return Location(self.source, self.line, self.column + offset)

    def excerpt(self) -> str:
        """Returns the line of the location, with a caret below the column; empty if the line does not exist."""
        if not 1 <= self.line <= len(self.source.lines):
            return ""
        line = self.source.lines[self.line - 1]
        # Tabs before the caret are kept, so that the caret is below the column for all tab widths.
        indent = "".join("\t" if character == "\t" else " " for character in line[: self.column - 1])
        return f"{line}\n{indent}^"


class LocatedText(str):
    """A string literal with the location of its first character; equal to the plain string."""

    location: Location | None

    def __new__(cls, text: str, location: Location | None) -> LocatedText:
        located = super().__new__(cls, text)
        located.location = location
        return located


class OdsError(Exception):
    """An error in a `.td` file; its text is a diagnostic with location, line and caret, and notes of the same form."""

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes: list[tuple[str, Location]] = []

    def note(self, message: str, location: Location) -> None:
        """Adds a note on the origin of the error; equal notes at the same location are added once."""
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
    """Returns `; did you mean 'x'?` for the candidate nearest to `name`; empty if none is near."""
    near = difflib.get_close_matches(name, list(candidates), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
