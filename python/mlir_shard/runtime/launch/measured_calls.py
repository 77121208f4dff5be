# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a program with their times and memory."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
# The file, and the content written to it, that make Linux count the peak anew.
_RESETS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
_OF_FILES = "RssFile"


@dataclass(frozen=True, slots=True)
class Measured:
    """The results and costs of several calls.

    results: of the last call; seconds: of each call; peak_bytes: the most memory of the first call, including its
    inputs, without pages of files such as code of libraries that it was the first to use; None if the system does not
    report it.
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
        repeat: the number of calls.
        begin: is called before each call, outside its time.
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
            # Pages of files stay, so that what there is of them at the end was there at the peak, or came later.
            grown = _kilobytes("VmHWM") - before.every - (_kilobytes(_OF_FILES) - before.of_files)
            peak = max(0, grown) * 1024 + sum(one.nbytes for one in given)
    return Measured(results, tuple(seconds), peak)


@dataclass(frozen=True, slots=True)
class _Resident:
    """The kilobytes of memory of this process: all, and those of files."""

    every: int
    of_files: int


def _reset_peak() -> _Resident | None:
    """Resets the peak memory of this process, and returns its present memory; None if the system does not allow it."""
    with contextlib.suppress(OSError):
        _RESETS.write_text(_RESET_PEAK, encoding="ascii")
        return _Resident(_kilobytes("VmRSS"), _kilobytes(_OF_FILES))
    return None


def _kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    return int(found[1]) if found else 0
