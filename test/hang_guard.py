# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Waits for processes with the only time limit of the tests. It is a guard against hanging, not a measurement."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable
from pathlib import Path

# Far more than any machine needs for one program, however slow or busy it is.
SECONDS = 900.0


def wait_until(condition: Callable[[], object]) -> None:
    """Returns once the condition holds."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition never came to hold"
        os.sched_yield()


def files_below(folder: Path, pattern: str) -> list[Path]:
    """Returns the sorted files below a folder whose names match a pattern; folders may come and go meanwhile."""
    walked = os.walk(folder)
    return sorted(Path(place, name) for place, _, names in walked for name in fnmatch.filter(names, pattern))
