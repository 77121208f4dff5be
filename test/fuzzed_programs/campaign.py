# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs many inputs, and counts inputs and outcomes."""

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
    """An input: its name, kind/seed/number, its text, and the pipeline that runs on it."""

    name: str
    text: bytes
    pipeline: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An input whose outcome is neither a module nor an error with a place."""

    input: Input
    outcome: Outcome

    def report(self) -> str:
        """Returns the failure and its stage."""
        return f"{self.input.name}: {self.outcome.kind} in '{self.outcome.stage}': {self.outcome.detail}"


@dataclass
class Report:
    """The outcomes of a campaign."""

    kinds: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def summary(self) -> str:
        """Returns the numbers, one per line."""
        lines = [f"{self.kinds.total()} inputs in {self.seconds:.0f} s, {len(self.findings)} findings"]
        return "\n".join([*lines, *(f"  {count} {kind}" for kind, count in self.kinds.most_common())])


def make(kind: str, seed: int, number: int) -> Input:
    """Returns the input of a number, which may be made from programs of the lit tests."""
    name = f"{kind}/{seed}/{number}"
    draw = Random(name)
    if kind == TEXT:
        text = mutated(corpus.any_program(draw), corpus.any_program(draw), draw)
        return Input(name, text, draw.choice(FREQUENT))
    text = unusual(corpus.any_program(draw), draw).encode()
    return Input(name, text, draw.choice(FREQUENT if draw.random() < _FREQUENT_SHARE else pipelines()))


Observe = Callable[[Finding], None]


def run(inputs: Iterable[Input], timeout: float, observe: Observe = lambda finding: None) -> Report:
    """Runs inputs, and calls `observe` with each finding and each signal in upstream's code."""
    with Worker(timeout) as worker:
        return _report(((one, worker.run(one.text, one.pipeline)) for one in inputs), observe)


def run_faults(seed: int, numbers: Iterable[int], timeout: float, observe: Observe = lambda finding: None) -> Report:
    """Runs a program on ranks with a different fault each time, and calls `observe` with each finding."""

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
