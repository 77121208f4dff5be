# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs many programs, and counts programs, operations and failures."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from queue import SimpleQueue

from differential.minimise import minimise
from differential.program import Statement, Value

from random_programs.cases import Case, mesh, op_kinds
from random_programs.execution import CRASH, ENGINE, HANG, INVALID, MISMATCH, REFUSAL, RIGHT, Outcome
from random_programs.received_bytes import ReceivedBytes
from random_programs.routes import Setting
from random_programs.worker import Worker

FAILURES = (MISMATCH, CRASH, HANG)
# A region that combines elements in an unspecified order. If it returns constants, the operation is not a reduction.
_NO_REDUCTION = re.compile(
    r"\^bb0\((?:%\w+: tensor<\w+>(?:, )?)+\):\n(?:(?!.*(?:return|\^bb0)).*\n)*?.*stablehlo\.(?:constant|iota)"
)
_ADDRESS = re.compile(r"^\S*?:\d+:\d+: |%\w+(#\d+)?|\d+|\"\w+\"")


@dataclass(frozen=True, slots=True)
class Finding:
    """A program whose outcome is not that all results are right."""

    case: Case
    outcome: Outcome

    def report(self) -> str:
        """Returns the failure and its stage."""
        outcome = self.outcome
        return f"program {self.case.name} ({self.case.dialect}), {outcome.kind} in '{outcome.stage}': {outcome.detail}"


@dataclass
class Report:
    """The outcomes of a campaign."""

    kinds: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    meshes: Counter[str] = field(default_factory=Counter)
    dialects: Counter[str] = field(default_factory=Counter)
    uneven: int = 0
    findings: list[Finding] = field(default_factory=list)
    received: ReceivedBytes = field(default_factory=ReceivedBytes)
    received_uneven: ReceivedBytes = field(default_factory=ReceivedBytes)

    @property
    def has_failures(self) -> bool:
        """True if a result is wrong, or a program crashed or hung."""
        return any(self.kinds[kind] for kind in FAILURES)

    def add(self, one: Case, outcome: Outcome) -> None:
        """Counts a program."""
        text = one.text()
        self.kinds[outcome.kind] += 1
        if outcome.kind != RIGHT:
            self.findings.append(Finding(one, outcome))
        if outcome.kind == INVALID:
            return
        self.ops += op_kinds(text)
        self.meshes[mesh(text)] += 1
        self.dialects[one.dialect] += 1
        self.uneven += outcome.is_uneven
        received = self.received_uneven if outcome.is_uneven else self.received
        received.add(one.name, outcome.received)

    def summary(self) -> str:
        """Returns the numbers, one per line."""
        run = self.kinds.total() - self.kinds[INVALID]
        ops = ", ".join(f"{name} {count}" for name, count in self.ops.most_common())
        meshes = ", ".join(f"{name} {count}" for name, count in self.meshes.most_common())
        dialects = ", ".join(f"{name} {count}" for name, count in self.dialects.most_common())
        refusals = Counter(_kind(one.outcome) for one in self.findings if one.outcome.kind == REFUSAL)
        return "\n".join(
            [
                f"{run} programs ({dialects}); {self.kinds[INVALID]} others cannot be run without sharding either",
                f"{self.ops.total()} operations of {len(self.ops)} kinds: {ops}",
                f"meshes: {meshes}; uneven blocks in {self.uneven} programs",
                f"{self.kinds[RIGHT]} right, {self.kinds[MISMATCH]} mismatches, {self.kinds[CRASH]} crashes, "
                f"{self.kinds[HANG]} hangs, {self.kinds[REFUSAL]} refusals, "
                f"{self.kinds[ENGINE]} internal errors of XLA",
                *(f"  {count} refused: {kind}" for kind, count in refusals.most_common()),
                *self.received.lines("even shards"),
                *self.received_uneven.lines("uneven shards"),
            ]
        )


Observe = Callable[[Finding], None]


def run(
    setting: Setting, cases: Sequence[Case], jobs: int, timeout: float, observe: Observe = lambda finding: None
) -> Report:
    """Runs programs in `jobs` processes, and calls `observe` with each finding."""
    report = Report()
    with ExitStack() as stack:
        free: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(jobs):
            free.put(stack.enter_context(Worker(setting, timeout)))

        def carry_out(one: Case) -> Outcome:
            worker = free.get()
            try:
                return worker.run(one.text(), one.seed)
            finally:
                free.put(worker)

        with ThreadPoolExecutor(jobs) as pool:
            for one, outcome in zip(cases, pool.map(carry_out, cases), strict=True):
                report.add(one, outcome)
                if outcome.kind != RIGHT:
                    observe(report.findings[-1])
    return report


def smallest(finding: Finding, worker: Worker, seconds: float) -> str:
    """Minimises a program with the same failure within about `seconds`, and returns it."""
    until = time.monotonic() + seconds

    def shows(text: str) -> bool:
        if time.monotonic() > until or _NO_REDUCTION.search(text) or _reads_nothing(text):
            return False
        found = worker.run(finding.case.text(text), finding.case.seed)
        return found.kind == finding.outcome.kind and _kind(found) == _kind(finding.outcome)

    text = finding.case.text(minimise(finding.case.program, shows, _source))
    found = worker.run(text, finding.case.seed)
    return f"{text}{found.kind} in '{found.stage}': {found.detail}"


def _reads_nothing(text: str) -> bool:
    """Returns True if an unwritten tensor is used, except as the destination of an op or for the sizes of a window."""
    others = "\n".join(line for line in text.splitlines() if "linalg.pooling" not in line)
    return any(
        len(re.findall(rf"{name}\b", others)) > 1 + len(re.findall(rf"outs\({name} :", others))
        for name in re.findall(r"(%\w+) = tensor\.empty", others)
    )


def _kind(outcome: Outcome) -> str:
    """Returns the failure without names and numbers; for a mismatch, an empty text."""
    if outcome.kind == MISMATCH:
        return ""
    lines = [line for line in outcome.detail.splitlines() if "error: " in line] or [outcome.detail]
    return _ADDRESS.sub("", lines[0])


def _source(value: Value) -> Statement:
    """Returns an operation without operands whose tensor has different elements if possible."""
    if value.shape and value.element[0] in "fiu" and value.element != "i1":
        text = f'"stablehlo.iota"() <{{iota_dimension = {len(value.shape) - 1} : i64}}> : () -> {value.type}'
    else:
        one = "true" if value.element == "i1" else "1.0" if value.element[0] in "fb" else "1"
        one = "(1.0, 2.0)" if value.element.startswith("complex") else one
        text = f'"stablehlo.constant"() <{{value = dense<{one}> : {value.type}}}> : () -> {value.type}'
    return Statement((value,), (text,))
