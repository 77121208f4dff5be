# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a program with their times and the memory that they take."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
# What Linux takes as an order to count the peak anew.
_RESETS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"


@dataclass(frozen=True, slots=True)
class Measured:
    """What several calls have returned and taken.

    results: of the last call; seconds: of each call; peak_bytes: the most memory that the first call has had, its
    inputs included, None where the system does not tell that.
    """

    results: Sequence[Any]
    seconds: tuple[float, ...]
    peak_bytes: int | None


def measure(
    call: Callable[[Sequence[Any]], Sequence[Any]],
    inputs: Sequence[Callable[[], Any]],
    repeat: int,
    begin: Callable[[], None] = lambda: None,
) -> Measured:
    """Calls a program several times.

    Args:
        call: takes inputs and returns results.
        inputs: each makes an array for a call, which the call may overwrite.
        repeat: how many calls.
        begin: is done before each call, outside its time.
    """
    seconds: list[float] = []
    peak: int | None = None
    results: Sequence[Any] = ()
    for number in range(repeat):
        # What the last call returned is freed first.
        results = ()
        given = [make() for make in inputs]
        before = _reset_peak() if number == 0 else None
        begin()
        start = time.perf_counter()
        results = call(given)
        seconds.append(time.perf_counter() - start)
        if before is not None:
            peak = max(0, _kilobytes("VmHWM") - before) * 1024 + sum(one.nbytes for one in given)
    return Measured(results, tuple(seconds), peak)


def _reset_peak() -> int | None:
    """Has the system count the peak of this process's memory anew, and returns the kilobytes that it has now."""
    with contextlib.suppress(OSError):
        _RESETS.write_text(_RESET_PEAK, encoding="ascii")
        return _kilobytes("VmRSS")
    return None


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) if found else 0
