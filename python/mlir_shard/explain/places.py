# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in the user's program, and tags in locations that identify an op after passes.

A tag is the metadata of a fused location. Passes give new ops the locations of the ops that they are made from, so the
tags of an op of the local program identify the ops of the propagated program that it comes from. Tags do not change
results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.python_frames import frame_to_show

_TAG = "mlir-shard "
# The names of the results of an op, which precede it.
_NAMES = r"(%[\w$.#-]+(?::\d+)?(?:\s*,\s*%[\w$.#-]+(?::\d+)?)*)\s*=\s*"
_RESULTS = re.compile(_NAMES + "$")
# The location of an op with a region in the middle of its syntax is that of another word of its line.
_LINE = re.compile(r"\s*" + _NAMES + r'"?([\w.]+)')
_VALUE = re.compile(r"%[\w$.-]+")
# The most bytes that are searched for names, as a line may be long.
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the user's program.

    Attributes:
        file, line, column: the position in the text; the file is empty if it is unknown.
        name: the name of the location, as from JAX and PyTorch: `jit(step)/layer_0/dot_general`.
        called_from: the place of the call of its function, if the call was inlined, or is on a call stack of JAX.

    The text shows one frame of a call stack, the innermost one outside of JAX.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    name: str = ""
    called_from: Place | None = None

    def __str__(self) -> str:
        one = self.in_text
        text = f"{one.file}:{one.line}:{one.column}" if one.file else ""
        text = " ".join(filter(None, (text, f'"{one.name}"' if one.name else ""))) or "an unknown location"
        return text if one.called_from is None else f"{text}, called from {one.called_from}"

    @property
    def in_text(self) -> Place:
        """The part of the place that is printed: one frame of a call stack, and the name of the op."""
        places = [self]
        while (around := places[-1].called_from) is not None:
            places.append(around)
        shown, count = frame_to_show([one.file for one in places])
        frame = places[shown]
        return Place(frame.file, frame.line, frame.column, self.name, places[count - 1].called_from)


def place_of(location: Any) -> Place:
    """Returns the place that a location names, without tags."""
    if isinstance(location, ir.FileLineColLoc):
        if location.start_line > 0:
            return Place(location.filename, location.start_line, location.start_col)
        return Place()
    if isinstance(location, ir.NameLoc):
        inner = place_of(location.child_loc)
        return Place(inner.file, inner.line, inner.column, location.name_str, inner.called_from)
    if isinstance(location, ir.CallSiteLoc):
        callee, caller = place_of(location.callee), place_of(location.caller)
        if callee == Place():
            return caller
        around = callee.called_from
        return Place(callee.file, callee.line, callee.column, callee.name, _joined(around, caller))
    if isinstance(location, ir.FusedLoc):
        return next((found for one in location.locations if (found := place_of(one)) != Place()), Place())
    return Place()


def _joined(inner: Place | None, outer: Place) -> Place | None:
    if outer == Place():
        return inner
    if inner is None:
        return outer
    return Place(inner.file, inner.line, inner.column, inner.name, _joined(inner.called_from, outer))


def tag(op: Any, kind: str, number: int) -> None:
    """Adds a tag to the location of an op."""
    location = op.location
    metadata = ir.StringAttr.get(f"{_TAG}{kind} {number}", context=location.context)
    op.location = ir.Location.fused([location], metadata, context=location.context)


def tags_of(location: Any) -> Iterator[tuple[str, int]]:
    """Yields the kinds and numbers of the tags in a location, outermost first."""
    if isinstance(location, ir.FusedLoc):
        metadata = location.metadata and location.metadata.maybe_downcast()
        if isinstance(metadata, ir.StringAttr) and metadata.value.startswith(_TAG):
            kind, number = metadata.value[len(_TAG) :].split(" ")
            yield kind, int(number)
        for one in location.locations:
            yield from tags_of(one)
    elif isinstance(location, ir.NameLoc):
        yield from tags_of(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from tags_of(location.callee)
        yield from tags_of(location.caller)


@dataclass(frozen=True)
class SourceTexts:
    """The texts of given files, to find the names of values in them."""

    texts: Mapping[str, str]

    @cached_property
    def _lines(self) -> dict[str, list[bytes]]:
        return {file: text.encode().splitlines() for file, text in self.texts.items()}

    def result_name(self, place: Place, op: str, index: int) -> str:
        """Returns the name of a result of the op at a place, `%0` or `%1#1`; empty if it is not found."""
        before = self._before(place)
        found = _RESULTS.search(before) or _LINE.match(before)
        if found is None or (found.re is _LINE and found[2] != op):
            return ""
        position = 0
        for group in found[1].split(","):
            name, _, size = group.strip().partition(":")
            many = int(size) if size else 1
            if index < position + many:
                return f"{name}#{index - position}" if many > 1 else name
            position += many
        return ""

    def argument_name(self, place: Place) -> str:
        """Returns the name of the argument whose definition is at a place; empty if none exists."""
        found = _VALUE.match(self._line(place)[place.column - 1 :][:_LONGEST].decode(errors="replace"))
        return found[0] if found else ""

    def _before(self, place: Place) -> str:
        return self._line(place)[: place.column - 1][-_LONGEST:].decode(errors="replace")

    def _line(self, place: Place) -> bytes:
        lines = self._lines.get(place.file, [])
        return lines[place.line - 1] if 0 < place.line <= len(lines) else b""
