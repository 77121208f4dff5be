# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frames of Python in locations: JAX names the whole call stack of an op, which is longer than a message should be."""

from __future__ import annotations

import re

# Python calls the source of what has no file `<stdin>` or `<string>`.
_PYTHON = re.compile(r".*\.py|<.*>")
_FRONT_END = re.compile(r"(.*[/\\])?(site|dist)-packages[/\\](jax|jaxlib)[/\\].*")


def is_python(file: str) -> bool:
    """Returns whether the name of a file in a location is that of Python code."""
    return _PYTHON.fullmatch(file) is not None


def is_of_front_end(file: str) -> bool:
    """Returns whether a file is a part of JAX, and not of the program that uses it."""
    return _FRONT_END.fullmatch(file) is not None
