# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs tests on many mistakes, one after the other, and counts the caught mistakes in each area.

Tests are run on a mistake in two rounds. The first round runs the tests that are recorded to execute its line, the
quickest first. The second round, for mistakes that are not caught yet, runs the tests of the area, except those that
are recorded not to execute the line. Verdicts may be stored in a file.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path

from mutated_code.areas import AREAS, ROOT, Area, related_tests
from mutated_code.checkout import Checkout, Verdict
from mutated_code.mistakes import Mistake
from mutated_code.recorded import Recording, is_in_function

# Starting pytest takes longer than running a few more tests.
_SECONDS_AT_FIRST, _SECONDS_RECORDED = 10.0, 40.0
Numbered = tuple[int, Mistake]


@dataclass
class Report:
    """The outcomes of a campaign."""

    caught: Counter[str] = field(default_factory=Counter)
    equivalent: list[Numbered] = field(default_factory=list)
    survivors: list[Numbered] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """Returns the numbers, one per line, and the mistakes that no test caught."""
        survived = Counter(one.area for _, one in self.survivors)
        count, total = self.caught.total(), self.caught.total() + len(self.survivors)
        return "\n".join(
            [
                f"{count} of {total} mistakes caught, {count / max(1, total):.1%}, in {self.seconds:.0f} s; "
                f"{len(self.equivalent)} others change nothing",
                *(
                    f"  {area.name}: {self.caught[area.name]} of {self.caught[area.name] + survived[area.name]}"
                    for area in AREAS
                ),
                *(f"changes nothing: {number} {one.report()}: {one.why_equivalent}" for number, one in self.equivalent),
                *(f"survives: {number} {one.report()}" for number, one in self.survivors),
            ]
        )


class Verdicts:
    """Verdicts on mistakes by round, which are stored in a file if one is given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self._known = {(one, turn): Verdict(*verdict) for one, turn, verdict in map(json.loads, lines)}

    def known(self, one: Mistake, turn: int) -> Verdict | None:
        """Returns the stored verdict of a round on a mistake, or None."""
        return self._known.get((one.report(), turn))

    def add(self, one: Mistake, turn: int, verdict: Verdict) -> None:
        """Stores a verdict."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([one.report(), turn, [verdict.is_caught, verdict.detail]]) + "\n")


def check(checkout: Checkout, areas: Sequence[Area]) -> str:
    """Runs the tests of areas on the unchanged code, and returns the failure, or an empty text."""
    for area in areas:
        path = area.files()[0]
        verdict = checkout.run(path, (ROOT / path).read_text(encoding="utf-8"), [[test] for test in area.tests])
        if verdict.is_caught:
            return f"{area.name}: {verdict.detail}"
    return ""


def run(
    checkout: Checkout,
    mistakes: Sequence[Numbered],
    areas: Sequence[Area],
    observe: Callable[[Numbered, Verdict, float], None] = lambda numbered, verdict, seconds: None,
    *,
    most_groups: int | None = None,
    recording: Recording | None = None,
    verdicts: Verdicts | None = None,
) -> Report:
    """Runs tests on each mistake, and calls `observe` with the verdict and the duration of each round.

    Runs `most_groups` groups of the tests of an area.
    """
    report, begin = Report(), time.monotonic()
    report.equivalent = [numbered for numbered in mistakes if numbered[1].why_equivalent]
    left = [numbered for numbered in mistakes if not numbered[1].why_equivalent]
    by_name = {area.name: area for area in areas}
    kept = verdicts or Verdicts(None)

    def recorded(one: Mistake) -> list[list[str]]:
        return list(_recorded_groups(recording, one)) if recording is not None else []

    def of_area(one: Mistake) -> list[list[str]]:
        groups = by_name[one.area].test_groups(one.path)[:most_groups]
        if recording is None or not is_in_function(one.path, one.line):
            return groups
        return [left for group in groups if (left := [file for test in group for file in recording.without(test)])]

    for turn, groups in enumerate((recorded, of_area)):
        survivors = []
        for numbered in left:
            one, start = numbered[1], time.monotonic()
            verdict = kept.known(one, turn)
            if verdict is None:
                verdict = checkout.run(one.path, one.text, groups(one))
                kept.add(one, turn, verdict)
            if verdict.is_caught:
                report.caught[one.area] += 1
            else:
                survivors.append(numbered)
            observe(numbered, verdict, time.monotonic() - start)
        left = survivors
    report.survivors, report.seconds = left, time.monotonic() - begin
    return report


def _recorded_groups(recording: Recording, one: Mistake) -> Iterator[list[str]]:
    """Yields the tests that execute the line of a mistake, first those that take a few seconds together, then others.

    Tests in files that have the name of the code or import it come first.
    """
    related = set(related_tests(one.path))
    tests = sorted(recording.tests(one.path, one.line), key=lambda of: of[0].partition("::")[0] not in related)
    totals = list(accumulate(seconds for _, seconds in tests))
    bounds = (0.0, _SECONDS_AT_FIRST, _SECONDS_RECORDED)
    for low, high in pairwise(bounds):
        group = [test for (test, _), total in zip(tests, totals, strict=True) if low < total <= high]
        if group:
            yield group
