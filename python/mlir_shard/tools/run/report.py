# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run's tables of results and times, and its progress line on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_shard.runtime.execution import Result
    from mlir_shard.runtime.program import Program, RankTimes
    from mlir_shard.runtime.reference.verify import Comparison


_UNSHARDED = "it on one, without sharding"
_HEADINGS = ("result", "type", "sharding", "max abs error", "max rel error", "")


def title(program: Program, compared_with: str = "", device: str = "rank") -> str:
    """Returns the title above the table; `compared_with` is empty for the unsharded program, or may be `nothing`."""
    how = "not compared with anything" if compared_with == "nothing" else f"compared with {compared_with or _UNSHARDED}"
    return f"@{program.entry} on {program.ranks} {device}{'s' if program.ranks > 1 else ''}, {how}:"


def name_of(number: int, names: Sequence[str]) -> str:
    """Returns the number of a result, with its name if it has one."""
    name = names[number] if number < len(names) else ""
    return f"{number} {name}" if name not in ("", f"result{number}") else str(number)


def table(results: Sequence[Result], comparisons: Sequence[Comparison] | None, names: Sequence[str] = ()) -> str:
    """Returns the table as text; `comparisons` are those of the results, None if nothing was compared."""
    rows: list[tuple[str, ...]] = [_HEADINGS if comparisons is not None else _HEADINGS[:3]]
    for index, result in enumerate(results):
        row = (name_of(index, names), str(result.port.spec), result.port.sharding or "replicated")
        rows.append((*row, *_errors(result, comparisons[index])) if comparisons is not None else row)
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as text in columns, the headings first; a paragraph for each row if the terminal is too narrow."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if not sys.stdout.isatty():
        return "\n".join(lines)
    columns = os.get_terminal_size(sys.stdout.fileno()).columns
    if max(map(len, lines)) <= columns:
        return "\n".join(lines)
    from mlir_shard.passes.fitted_table import FittedTable, as_text

    return as_text(FittedTable(rows[0], rows[1:]), columns)


def all_agree(results: Sequence[Result], comparisons: Sequence[Comparison] | None) -> bool:
    """Returns whether all compared results are correct, and all results are equal on the ranks that hold them."""
    equal = comparisons is None or all(one.is_equal for one in comparisons)
    return equal and not any(result.disagreement for result in results)


def _errors(result: Result, comparison: Comparison) -> tuple[str, str, str]:
    is_right = comparison.is_equal and not result.disagreement
    verdict = "MISMATCH" if not is_right else "OK, rounding" if comparison.by_rounding else "OK"
    return f"{comparison.absolute:.2e}", f"{comparison.relative:.2e}", verdict


_PARTS = 3


class Progress:
    """Shows the current activity, and the completed parts of a run; `times` are the latest times of the ranks."""

    def __init__(self, bar: Any | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None) if bar else None
        self.times: tuple[RankTimes, ...] = ()

    def say(self, what: str) -> None:
        """Shows the name of an activity that begins, of unknown duration."""
        if self._bar:
            self._bar.update(self._task, description=what, total=None)

    def observe(self, times: Sequence[RankTimes]) -> None:
        """Records the times of the ranks, and shows their progress."""
        self.times = tuple(times)
        if self._bar:
            done = sum(one.parts_done for one in times)
            self._bar.update(self._task, total=_PARTS * len(times), completed=done)


@contextmanager
def shown(is_wanted: bool) -> Iterator[Progress]:
    """Yields the progress, shown if that is wanted and standard error is a terminal."""
    if not (is_wanted and sys.stderr.isatty()):
        yield Progress(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Standard output is for results, and may be a file.
    with Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield Progress(bar)
