# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far shard-run is, on a terminal: a line that goes when it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.runtime.program import RankTimes

_PARTS = 3


class Progress:
    """Shows what is being done, and of a run how many of its parts; `times` are the last that the ranks gave."""

    def __init__(self, bar: Any | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None) if bar else None
        self.times: tuple[RankTimes, ...] = ()

    def say(self, what: str) -> None:
        """Something begins, and nobody knows how long it takes."""
        if self._bar:
            self._bar.update(self._task, description=what, total=None)

    def observe(self, times: Sequence[RankTimes]) -> None:
        """Ranks have got as far as that."""
        self.times = tuple(times)
        if self._bar:
            done = sum(one.parts_done for one in times)
            self._bar.update(self._task, total=_PARTS * len(times), completed=done)


@contextmanager
def shown(is_wanted: bool) -> Iterator[Progress]:
    """Progress, shown where that is wanted and standard error is a terminal."""
    if not (is_wanted and sys.stderr.isatty()):
        yield Progress(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Standard output is the user's, and may be a file.
    with Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield Progress(bar)
