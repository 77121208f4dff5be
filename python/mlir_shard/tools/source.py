# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The input of a driver: a file or standard input, whole or in the parts between marker lines."""

from __future__ import annotations

import dataclasses
import re
import sys

STANDARD_INPUT = "<stdin>"


class SourceError(OSError):
    """An input that cannot be read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Text under the name that diagnostics use for it."""

    name: str
    text: bytes


def read(path: str) -> Source:
    """The file at `path`, or standard input for `-`.

    Raises:
        SourceError: it cannot be read.
    """
    if path == "-":
        return Source(STANDARD_INPUT, sys.stdin.buffer.read())
    try:
        with open(path, "rb") as file:
            return Source(path, file.read())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"cannot open input file '{path}': {reason}") from None


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
