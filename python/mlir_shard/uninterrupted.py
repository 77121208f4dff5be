# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Deferral of the signals that end a process."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Defers signals that have a handler in Python, such as a second interrupt, until the end of the context."""
    if threading.current_thread() is not threading.main_thread():
        # Python runs signal handlers only in the main thread.
        yield
        return
    came: list[int] = []

    def put_off(number: int, _: Any) -> None:
        came.append(number)

    handlers = {one: handler for one in _ENDING if callable(handler := signal.getsignal(one))}
    for one in handlers:
        signal.signal(one, put_off)
    try:
        yield
    finally:
        for one, handler in handlers.items():
            signal.signal(one, handler)
    for number in dict.fromkeys(came):
        signal.raise_signal(number)
