# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The input of a driver, in one part or in those between marker lines, and diagnostics that show its lines."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from typing import TextIO

from mlir_shard.passes.diagnostic import Diagnostic, Position
from mlir_shard.tools.command_line import UsageError

STANDARD_INPUT = "<stdin>"


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Text under the name that diagnostics use for it."""

    name: str
    text: bytes


def read(path: str) -> Source:
    """The file at `path`, or standard input for `-`.

    Raises:
        UsageError: it cannot be read.
    """
    if path == "-":
        try:
            return Source(STANDARD_INPUT, sys.stdin.buffer.read())
        except OSError as error:
            raise UsageError(f"cannot read standard input: {error.strerror}") from None
    try:
        with open(path, "rb") as file:
            return Source(path, file.read())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot open input file '{path}': {reason}") from None


def split(source: Source, marker: str) -> tuple[Source, ...]:
    """The parts of a source between the lines that start with `marker`.

    Each part has empty lines where the parts before it were, so that lines keep their numbers.
    """
    line = re.compile(rb"^" + re.escape(marker.encode()) + rb"(?:[ \t][^\n]*|\r)?(?:\n|\Z)", re.MULTILINE)
    parts, start, lines_before = [], 0, 0
    for found in line.finditer(source.text):
        parts.append(Source(source.name, b"\n" * lines_before + source.text[start : found.start()]))
        lines_before += source.text.count(b"\n", start, found.end())
        start = found.end()
    return (*parts, Source(source.name, b"\n" * lines_before + source.text[start:]))


class Console:
    """Prints diagnostics, with the lines they are about where these are of a known source or of Python code.

    A location in a module may name any file; such a file is not opened.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._texts: dict[str, bytes] = {}
        self._lines: dict[str, list[bytes]] = {}

    def add(self, source: Source) -> None:
        """Makes the text of a source known; a later one of the same name replaces it."""
        self._texts[source.name] = source.text
        self._lines.pop(source.name, None)

    def texts(self) -> dict[str, str]:
        """Returns the texts of the sources that are known, by name."""
        return {name: text.decode(errors="replace") for name, text in self._texts.items()}

    def report(self, diagnostic: Diagnostic) -> None:
        """Prints a diagnostic and its notes."""
        print(self.render(diagnostic), file=self._stream, flush=True)

    def render(self, diagnostic: Diagnostic) -> str:
        """The text of a diagnostic and its notes."""
        lines = [diagnostic.heading]
        position = diagnostic.position
        line = self._line(position) if position else None
        if position and line is not None:
            lines += [_shown(line), _caret(line, position.column)]
        return "\n".join([*lines, *map(self.render, diagnostic.notes)])

    def _line(self, position: Position) -> bytes | None:
        if position.file not in self._lines:
            text = self._texts.get(position.file)
            if text is None and not position.is_python:
                return None
            self._lines[position.file] = _read_lines(position.file) if text is None else text.split(b"\n")
        lines = self._lines[position.file]
        return lines[position.line - 1] if 1 <= position.line <= len(lines) else None


def _read_lines(path: str) -> list[bytes]:
    try:
        # The name that code was compiled with need not be that of a file.
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            return file.read().split(b"\n")
    except (OSError, ValueError):
        # The file may be gone since it was loaded.
        return []


def _shown(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")


def _caret(line: bytes, column: int) -> str:
    """A caret under a byte of the line; tabs before it stay tabs, so that it stands right whatever their width."""
    before = line[: max(0, column - 1)].decode(errors="replace")
    return "".join("\t" if character == "\t" else " " for character in before) + "^"
