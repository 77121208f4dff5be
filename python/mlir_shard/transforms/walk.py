# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walking over operations in a way that lets exceptions through, which the host's walk wraps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def ops_below(root: Any, enters: Callable[[Any], bool] = lambda op: True) -> Iterator[Any]:
    """The operations inside `root`, each before those in its regions, which are left out where `enters` says no."""
    for region in root.operation.regions:
        for block in region.blocks:
            for op in list(block.operations):
                op = op.operation
                yield op
                if len(op.regions) and enters(op):
                    yield from ops_below(op, enters)


def ops_in(root: Any) -> Iterator[Any]:
    """`root` itself, then the operations inside it."""
    yield root.operation
    yield from ops_below(root)
