# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares many programs, and counts programs, known mistakes of Shardy and unexplained differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from differential.compare import Comparison, Difference, Tally
from differential.generate import program
from differential.known import aborts_on_dead_code, mistake_of_shardy, stops_early
from differential.minimise import minimise


@dataclass(frozen=True, slots=True)
class Finding:
    """An unexplained difference of the program of a seed."""

    seed: str
    functions_stay: bool
    difference: Difference

    def report(self) -> str:
        """Returns the name of the pass and its difference."""
        return "\n".join([f"program {self.seed}, {self.difference.name}:", *self.difference.lines()])


@dataclass
class Report:
    """The outcomes of a campaign."""

    tally: Tally
    explained: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def summary(self) -> str:
        """Returns the numbers, one per line."""
        tally = self.tally
        runs, explained = tally.passes.total(), self.explained.total()
        lines = [
            f"{tally.programs} programs, {tally.invalid} of them refused by Shardy's verifier",
            f"{runs} runs of {len(tally.passes)} passes and pipelines compared; "
            f"Shardy fails in {tally.refused.total()} of them",
            f"{explained + len(self.findings)} differences: {explained} explained, {len(self.findings)} unexplained",
            *(f"  {count} {name}" for name, count in self.explained.most_common()),
        ]
        return "\n".join(lines)


def run(comparison: Comparison, seed: int, programs: Iterable[int], *, quick: bool = False) -> Report:
    """Compares programs of a seed. Every other program keeps its functions; the functions of the others are inlined.

    With `quick`, single passes are compared only if the whole pipeline differs, also without dead code.
    """
    report = Report(comparison.tally)
    for index in programs:
        name, functions_stay = f"{seed}/{index}", index % 2 == 0
        text = program(name).write()
        if quick:
            theirs, difference = comparison.whole(text, functions_stay=functions_stay)
            if not theirs.error.startswith("invalid") and (
                difference is None or aborts_on_dead_code(difference, comparison)
            ):
                report.tally.programs += 1
                report.explained[aborts_on_dead_code.__name__] += difference is not None
                continue
        found = comparison.program(text, functions_stay=functions_stay)
        mistakes = [mistake_of_shardy(difference, comparison) for difference in found]
        stopped = any(
            mistake == stops_early.__name__ and difference.name.startswith("sdy-user-priority-propagate")
            for difference, mistake in zip(found, mistakes, strict=True)
        )
        for difference, mistake in zip(found, mistakes, strict=True):
            # The output of the pipeline differs if that of the propagation in it does.
            if mistake is None and stopped and difference.name.startswith("sdy-propagation-pipeline"):
                mistake = f"{stops_early.__name__}, in the pipeline"
            if mistake is not None:
                report.explained[mistake] += 1
            else:
                report.findings.append(Finding(name, functions_stay, difference))
    return report


def smallest(finding: Finding, comparison: Comparison) -> str:
    """Returns a minimal program with a difference of the same kind at the same pass, and that difference."""

    def difference(text: str) -> Difference | None:
        return comparison.same_place(text, finding.difference, functions_stay=finding.functions_stay)

    def shows(text: str) -> bool:
        found = difference(text)
        return (
            found is not None
            and _kind(found) == _kind(finding.difference)
            and mistake_of_shardy(found, comparison) is None
        )

    text = minimise(program(finding.seed), shows)
    found = difference(text)
    lines: Iterable[str] = () if found is None else ("the pass runs on:", found.before, *found.lines())
    return "\n".join([text, *lines])


def _kind(difference: Difference) -> tuple[bool, bool]:
    return difference.shardy.text is None, difference.here.text is None
