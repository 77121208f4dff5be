# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs from which inputs are made: those of the lit tests, and random ones."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from random import Random

from differential.generate import program
from random_programs.cases import case
from random_programs.generate import DIALECTS

_TESTS = Path(__file__).parents[1]
_FOLDERS = ("dialects", "plugins", "tools", "transforms")
_SPLIT = re.compile(r"^// -----.*\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_MOST_CHARACTERS = 6000
_RANDOM_PROGRAMS = 1000


@functools.cache
def test_programs() -> tuple[str, ...]:
    """Returns the programs of the lit tests, without comments, in the order of the files."""
    files = sorted(path for folder in _FOLDERS for path in (_TESTS / folder).rglob("*.mlir"))
    parts = (part for path in files for part in _SPLIT.split(path.read_text(encoding="utf-8", errors="replace")))
    texts = (_COMMENT.sub("", part).strip() + "\n" for part in parts)
    return tuple(text for text in texts if 1 < len(text) <= _MOST_CHARACTERS)


def any_program(draw: Random) -> str:
    """Returns a program of a lit test or a random one, with equal probability."""
    return draw.choice(test_programs()) if draw.random() < 0.5 else random_program(draw)


def random_program(draw: Random) -> str:
    """Returns a random program in one of the dialects."""
    index = draw.randrange(_RANDOM_PROGRAMS)
    return program(f"0/{index}").write() if draw.random() < 0.5 else case(0, index, DIALECTS).text()
