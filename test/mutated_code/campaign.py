# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many mistakes, one after the other: how many are caught in each area, and which are not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mutated_code.areas import AREAS, ROOT, Area
from mutated_code.checkout import Checkout, Verdict
from mutated_code.mistakes import Mistake


@dataclass
class Report:
    """What came of a campaign."""

    caught: Counter[str] = field(default_factory=Counter)
    survivors: list[Mistake] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """The numbers, a line each, and the mistakes that no test caught."""
        survived = Counter(one.area for one in self.survivors)
        count, total = self.caught.total(), self.caught.total() + len(self.survivors)
        return "\n".join(
            [
                f"{count} of {total} mistakes caught, {count / max(1, total):.1%}, in {self.seconds:.0f} s",
                *(
                    f"  {area.name}: {self.caught[area.name]} of {self.caught[area.name] + survived[area.name]}"
                    for area in AREAS
                ),
                *(f"survives: {one.report()}" for one in self.survivors),
            ]
        )


def check(checkout: Checkout, areas: Sequence[Area]) -> str:
    """Runs the tests of areas on the code as it is; what fails, empty if nothing does."""
    for area in areas:
        path = area.files()[0]
        verdict = checkout.run(path, (ROOT / path).read_text(encoding="utf-8"), [[test] for test in area.tests])
        if verdict.is_caught:
            return f"{area.name}: {verdict.detail}"
    return ""


def run(
    checkout: Checkout,
    mistakes: Sequence[Mistake],
    areas: Sequence[Area],
    observe: Callable[[Mistake, Verdict, float], None] = lambda mistake, verdict, seconds: None,
    most_groups: int | None = None,
) -> Report:
    """Runs tests on each mistake, of `most_groups` groups; `observe` is told what came of it, and how long it took."""
    report, begin = Report(), time.monotonic()
    by_name = {area.name: area for area in areas}
    for one in mistakes:
        start = time.monotonic()
        verdict = checkout.run(one.path, one.text, by_name[one.area].test_groups(one.path)[:most_groups])
        if verdict.is_caught:
            report.caught[one.area] += 1
        else:
            report.survivors.append(one)
        report.seconds = time.monotonic() - begin
        observe(one, verdict, time.monotonic() - start)
    return report
