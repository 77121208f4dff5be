# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the passes of one run share: what one has found out and no pass can change, such as rules of ops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

# Of the runs under way, the innermost last: they hold attributes and types, so they end with their run.
_runs: list[dict[Hashable, Any]] = []


@contextlib.contextmanager
def sharing() -> Iterator[None]:
    """Has the passes that run meanwhile share."""
    _runs.append({})
    try:
        yield
    finally:
        _runs.pop()


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once for each key in a run; anew where no passes run."""
    if not _runs:
        return make()
    if key not in _runs[-1]:
        _runs[-1][key] = make()
    found: T = _runs[-1][key]
    return found
