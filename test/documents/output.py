# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the output of a block with that on the page."""

from __future__ import annotations

import re

ANY = "…"
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?e[-+]\d+")


def missing_line(expected: str, actual: str, *, whole: bool) -> str | None:
    """Returns the first line of an expected output that the actual one does not have in its place, or None.

    Args:
        expected: The lines of the page.
        actual: The output of the block.
        whole: Whether that must be the entire output; otherwise it may begin and end anywhere in it.
    """
    lines = [line for line in expected.splitlines() if line.strip()]
    if _matches(lines, actual, whole):
        return None
    for count, line in enumerate(lines, 1):
        if not _matches([*lines[:count], ANY], actual, whole):
            return line
    return f"its end after the line: {lines[-1]}" if lines else "nothing"


def _matches(lines: list[str], actual: str, whole: bool) -> bool:
    # Pages break lines that are too long for them, so all white space is equivalent.
    pattern, gap = "", r"\s*"
    for line in lines:
        if line.strip() == ANY:
            gap = r"[\s\S]*?"
            continue
        for word in line.split():
            pattern += gap + _pattern(word)
            gap = r"\s+"
    pattern += gap if lines and lines[-1].strip() == ANY else r"\s*"
    return (re.fullmatch if whole else re.search)(pattern, actual) is not None


def _pattern(word: str) -> str:
    # Numbers with an exponent are rounding errors and times, which depend on the processor.
    parts = [".*".join(map(re.escape, part.split(ANY))) for part in _NUMBER.split(word)]
    return _NUMBER.pattern.join(parts)
