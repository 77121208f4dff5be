# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How often Python looks for garbage while passes run: what they make lives until they end."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

ALLOCATIONS_BETWEEN_COLLECTIONS = 200_000

_lock = threading.Lock()
# One for each context that is open, in all threads; and what is set again after the last one.
_open = 0
_before: tuple[int, int, int] = gc.get_threshold()


@contextlib.contextmanager
def fewer_collections() -> Iterator[None]:
    """Collects garbage at most once in `ALLOCATIONS_BETWEEN_COLLECTIONS`; not at all where that is switched off."""
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
    """Collects no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
