# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frames of Python in locations: JAX records the entire call stack of an op, which is too long for a message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

# Python calls the source of code without a file `<stdin>` or `<string>`.
_PYTHON = re.compile(r".*\.py|<.*>")
_FRONT_END = re.compile(r"(.*[/\\])?(site|dist)-packages[/\\](jax|jaxlib)[/\\].*")


def frame_to_show(files: Sequence[str]) -> tuple[int, int]:
    """Finds the frame of a call stack that a message shows: the innermost that is not in JAX, or else the innermost.

    Args:
        files: the files of a place and of its callers, innermost first, not empty.

    Returns:
        The number of the frame, and the number of places that are frames of one call stack of Python.
    """
    count = 1 + len(list(takewhile(_PYTHON.fullmatch, files[1:])))
    if _FRONT_END.fullmatch(files[0]) is None:
        return 0, count
    return next((number for number in range(count) if _FRONT_END.fullmatch(files[number]) is None), 0), count
