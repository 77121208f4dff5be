# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measurement of the times and the peak memory of calls of a program."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
# Writing this content to this file makes Linux reset the peak.
_RESETS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_OF_FILES = "RssFile"


@dataclass(frozen=True, slots=True)
class Measured:
    """The results and costs of several calls.

    results: of the last call; seconds: of each call; peak_bytes: the peak memory of the first call, including its
    inputs, without pages of files such as library code that it loads; None if the system does not report it.
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
        call: the program, which takes inputs and returns results.
        inputs: functions, each of which makes an array for a call, which the call may overwrite.
        repeat: the number of calls.
        begin: is called before each call, outside its time.
    """
    seconds: list[float] = []
    peak: int | None = None
    results: Sequence[Any] = ()
    for number in range(repeat):
        # Frees the results of the previous call.
        results = ()
        given = [make() for make in inputs]
        before = _reset_peak() if number == 0 else None
        begin()
        start = time.perf_counter()
        results = call(given)
        seconds.append(time.perf_counter() - start)
        if before is not None:
            # Pages of files are not evicted, so their growth until now is at least their part of the peak.
            grown = _kilobytes("VmHWM") - before.every - (_kilobytes(_OF_FILES) - before.of_files)
            peak = max(0, grown) * 1024 + sum(one.nbytes for one in given)
    return Measured(results, tuple(seconds), peak)


@dataclass(frozen=True, slots=True)
class _Resident:
    """The resident kilobytes of this process: in total, and of files."""

    every: int
    of_files: int


def _reset_peak() -> _Resident | None:
    """Resets the peak memory of this process and returns its current memory; None if the system does not allow it."""
    with contextlib.suppress(OSError):
        _RESETS.write_text(_RESET_PEAK, encoding="ascii")
        return _Resident(_kilobytes("VmRSS"), _kilobytes(_OF_FILES))
    return None


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) if found else 0
