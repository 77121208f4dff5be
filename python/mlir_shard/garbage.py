# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reduces the frequency of garbage collections while passes run: most of their objects live until they end."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

ALLOCATIONS_BETWEEN_COLLECTIONS = 200_000

_lock = threading.Lock()
# The number of open contexts in all threads, and the thresholds to restore after the last one.
_open = 0
_before: tuple[int, int, int] = gc.get_threshold()


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Collects garbage at most once in `ALLOCATIONS_BETWEEN_COLLECTIONS`; not at all if collection is disabled."""
    global _open, _before
    with _lock:
        if not _open:
            _before = gc.get_threshold()
            if 0 < _before[0] < ALLOCATIONS_BETWEEN_COLLECTIONS:
                gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS, *_before[1:])
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                gc.set_threshold(*_before)


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Disables garbage collection in the context."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
