# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of deeply nested regions: passes recurse into them, as far as Python lets them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

# Enough for some 600 regions inside one another, and within a stack of 8 MiB on every supported Python.
_FRAMES = 5000
# What is nested less deeply than this cannot be what a pass failed of.
_DEEP = 64


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Lets passes recurse deeper than Python does by default."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def too_deep(root: Any) -> tuple[Any, int] | None:
    """The operation below `root` in the most regions, and their number; None where that is none to speak of."""
    found, most = root, 0
    left = [(root, 0)]
    while left:
        op, depth = left.pop()
        if depth > most:
            found, most = op, depth
        for region in op.regions:
            for block in region.blocks:
                left += [(inner.operation, depth + 1) for inner in block.operations]
    return (found, most) if most >= _DEEP else None
