# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The input of a driver, its parts between marker lines, and diagnostics that show its lines."""

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
    """A text and its name in diagnostics."""

    name: str
    text: bytes


def read(path: str) -> Source:
    """Reads the file at `path`, or standard input for `-`.

    Raises:
        UsageError: the input cannot be read.
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
    """Returns the parts of a source between the lines that start with `marker`.

    Each part begins with empty lines in place of the parts before it, so that lines keep their numbers.
    """
    line = re.compile(rb"^" + re.escape(marker.encode()) + rb"(?:[ \t][^\n]*|\r)?(?:\n|\Z)", re.MULTILINE)
    parts, start, lines_before = [], 0, 0
    for found in line.finditer(source.text):
        parts.append(Source(source.name, b"\n" * lines_before + source.text[start : found.start()]))
        lines_before += source.text.count(b"\n", start, found.end())
        start = found.end()
    return (*parts, Source(source.name, b"\n" * lines_before + source.text[start:]))


class Console:
    """Prints diagnostics, and the lines at their positions if these are in a known source or in Python code.

    A location in a module may name any file; such a file is not opened.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._texts: dict[str, bytes] = {}
        self._lines: dict[str, list[bytes]] = {}

    def add(self, source: Source) -> None:
        """Adds the text of a source, which replaces an earlier one of the same name."""
        self._texts[source.name] = source.text
        self._lines.pop(source.name, None)

    def texts(self) -> dict[str, str]:
        """Returns the texts of the known sources, by name."""
        return {name: text.decode(errors="replace") for name, text in self._texts.items()}

    def report(self, diagnostic: Diagnostic) -> None:
        """Prints a diagnostic and its notes."""
        print(self.render(diagnostic), file=self._stream, flush=True)

    def render(self, diagnostic: Diagnostic) -> str:
        """Returns the text of a diagnostic and its notes."""
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
        # The name under which Python code was compiled need not be that of a file.
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            return file.read().split(b"\n")
    except (OSError, ValueError):
        # The file may have been removed since it was loaded.
        return []


def _shown(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")


def _caret(line: bytes, column: int) -> str:
    """Returns a line with a caret under a byte of `line`; tabs before the byte are kept, whatever their width."""
    before = line[: max(0, column - 1)].decode(errors="replace")
    return "".join("\t" if character == "\t" else " " for character in before) + "^"
