# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many inputs run: how many there were, and what came of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from fuzzed_programs import corpus, faults
from fuzzed_programs.mutations import mutated
from fuzzed_programs.outcome import FINDINGS, HOST_SIGNAL, Outcome
from fuzzed_programs.pipelines import FREQUENT, pipelines
from fuzzed_programs.unusual import unusual
from fuzzed_programs.worker import Worker

TEXT, PROGRAMS, FAULTS = "text", "programs", "faults"
KINDS = (TEXT, PROGRAMS, FAULTS)
_FREQUENT_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Input:
    """An input by its name, kind/seed/number, and what runs on it."""

    name: str
    text: bytes
    pipeline: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An input of which something else came than a module or an error with a place."""

    input: Input
    outcome: Outcome

    def report(self) -> str:
        """What went wrong where."""
        return f"{self.input.name}: {self.outcome.kind} in '{self.outcome.stage}': {self.outcome.detail}"


@dataclass
class Report:
    """What came of a campaign."""

    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """The numbers, a line each."""
        lines = [f"{self.kinds.total()} inputs in {self.seconds:.0f} s, {len(self.findings)} findings"]
        return "\n".join([*lines, *(f"  {count} {kind}" for kind, count in self.kinds.most_common())])


def make(kind: str, seed: int, number: int) -> Input:
    """Returns the input of a number; the lit tests are part of what it is made of."""
    name = f"{kind}/{seed}/{number}"
    draw = Random(name)
    if kind == TEXT:
        text = mutated(corpus.any_program(draw), corpus.any_program(draw), draw)
        return Input(name, text, draw.choice(FREQUENT))
    text = unusual(corpus.any_program(draw), draw).encode()
    return Input(name, text, draw.choice(FREQUENT if draw.random() < _FREQUENT_SHARE else pipelines()))


Observe = Callable[[Finding], None]


def run(inputs: Iterable[Input], timeout: float, observe: Observe = lambda finding: None) -> Report:
    """Runs inputs; `observe` is told each finding, and each signal in upstream's code."""
    with Worker(timeout) as worker:
        return _report(((one, worker.run(one.text, one.pipeline)) for one in inputs), observe)


def run_faults(seed: int, numbers: Iterable[int], timeout: float, observe: Observe = lambda finding: None) -> Report:
    """Runs a program on ranks, each time with another fault; `observe` is told each finding."""

    def outcomes() -> Iterator[tuple[Input, Outcome]]:
        for number in numbers:
            fault = faults.make(seed, number)
            name = f"{FAULTS}/{seed}/{number}"
            yield Input(name, faults.PROGRAM.encode(), str(fault)), faults.run(fault, timeout)

    return _report(outcomes(), observe)


def _report(outcomes: Iterable[tuple[Input, Outcome]], observe: Observe) -> Report:
    report, begin = Report(), time.monotonic()
    for one, outcome in outcomes:
        report.kinds[outcome.kind] += 1
        finding = Finding(one, outcome)
        if outcome.kind in FINDINGS:
            report.findings.append(finding)
        if outcome.kind in FINDINGS or outcome.kind == HOST_SIGNAL:
            observe(finding)
        report.seconds = time.monotonic() - begin
    return report
