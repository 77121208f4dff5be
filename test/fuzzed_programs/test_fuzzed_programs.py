# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unusual inputs end in modules or errors; tests a few of those of `python -m fuzzed_programs`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hang_guard import SECONDS

from fuzzed_programs import campaign
from fuzzed_programs.campaign import PROGRAMS, TEXT, Input
from fuzzed_programs.outcome import (
    DONE,
    HANG,
    HOST_SIGNAL,
    INTERNAL,
    MADE_INVALID,
    NO_MODULE,
    REFUSED,
    SIGNAL,
    SILENT,
    Outcome,
    Runner,
)
from fuzzed_programs.pipelines import pipelines
from fuzzed_programs.worker import Worker

VALID = b"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"
# Each of these passes makes a mistake of one kind.
MISTAKES = """
import os
import signal

from mlir_shard import Pass, register
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure


class Mistake(Pass):
    anchor = "func.func"
    summary = "Makes a mistake"


@register
class Raises(Mistake):
    name = "test-raises"

    def run(self, op):
        raise KeyError("nothing")


@register
class MakesInvalid(Mistake):
    name = "test-makes-invalid"

    def run(self, op):
        op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))


@register
class Refuses(Mistake):
    name = "test-refuses"

    def run(self, op):
        raise PassFailure("not this one", op)


@register
class Crashes(Mistake):
    name = "test-crashes"

    def run(self, op):
        os.kill(os.getpid(), signal.SIGSEGV)


@register
class Waits(Mistake):
    name = "test-waits"

    def run(self, op):
        signal.pause()
"""


@pytest.fixture
def mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mistaken_passes.py").write_text(MISTAKES)
    monkeypatch.syspath_prepend(str(tmp_path))


def worker(timeout: float) -> Worker:
    return Worker(timeout, modules=("mistaken_passes",))


def run(kind: str, count: int) -> None:
    inputs = [campaign.make(kind, 0, number) for number in range(count)]
    report = campaign.run(inputs, SECONDS)
    print(report.summary())
    assert not report.findings, "\n".join(finding.report() for finding in report.findings)
    assert report.kinds[NO_MODULE] > 0.1 * count
    assert report.kinds[DONE] > (0.2 * count if kind == PROGRAMS else 0)


def test_text_with_mistakes() -> None:
    run(TEXT, 200)


def test_unusual_programs() -> None:
    run(PROGRAMS, 60)


def test_inputs_depend_on_their_numbers_alone() -> None:
    assert campaign.make(TEXT, 3, 7) == campaign.make(TEXT, 3, 7)
    assert len({campaign.make(TEXT, 0, number).text for number in range(20)}) == 20
    assert {campaign.make(PROGRAMS, 0, number).pipeline for number in range(400)} & set(pipelines())


def test_kinds_of_outcomes() -> None:
    runner = Runner()
    assert runner.run(VALID, "builtin.module(shard-propagate)").kind == DONE
    assert runner.run(b"func.func @main(", "builtin.module(shard-propagate)").kind == NO_MODULE
    assert runner.run(VALID, "builtin.module(no-such-pass)").kind == INTERNAL


@pytest.mark.usefixtures("mistakes")
def test_mistakes_of_passes_are_found() -> None:
    def kind(name: str) -> str:
        return process.run(VALID, f"builtin.module(func.func({name}))").kind

    with worker(SECONDS) as process:
        assert kind("test-refuses") == REFUSED
        assert kind("test-raises") == INTERNAL
        assert kind("test-makes-invalid") == MADE_INVALID
        crashed = process.run(VALID, "builtin.module(func.func(test-crashes))")
        assert crashed.kind == HOST_SIGNAL
        assert "in pass 'test-crashes'" in crashed.detail
        assert kind("test-refuses") == REFUSED


@pytest.mark.usefixtures("mistakes")
def test_what_does_not_end_is_stopped() -> None:
    with worker(0.5) as process:
        assert process.run(VALID, "builtin.module(func.func(test-waits))").kind == HANG


def test_reports() -> None:
    found = campaign.Finding(Input("text/0/1", b"", "p"), Outcome(SILENT, "parse", "detail"))
    assert found.report() == "text/0/1: failed without an error in 'parse': detail"
    report = campaign.Report(findings=[found], seconds=2.0)
    report.kinds[SILENT] = report.kinds[SIGNAL] = 1
    assert report.summary().splitlines()[0] == "2 inputs in 2 s, 1 findings"
