# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a few programs of `python -m random_programs` on devices with the programs without sharding."""

from __future__ import annotations

import pytest
from hang_guard import SECONDS
from runtime.local_program import needs_jax, needs_mpich

from mlir_shard.transforms.propagate.propagation_passes import PropagationPass
from random_programs import campaign, routes
from random_programs.campaign import Report
from random_programs.cases import case, op_kinds
from random_programs.execution import CRASH, HANG, INVALID, MISMATCH, RIGHT, outcome
from random_programs.generate import DIALECTS, SMALL, Scale
from random_programs.region_ops import whole_text
from random_programs.routes import Setting
from random_programs.worker import Worker

WRONG = """
sdy.mesh @m = <["a"=2]>
func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
  // manual
  %1 = stablehlo.negate %0 : tensor<4xf32>
  // whole: %1 = stablehlo.abs %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
ENDLESS = """
sdy.mesh @m = <["a"=2]>
func.func @main(%0: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<7> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  // manual
  %start = stablehlo.and %0, %c : tensor<i32>
  %1 = stablehlo.while(%2 = %start) : tensor<i32> cond {
    %3 = stablehlo.compare GE, %2, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.add %2, %c : tensor<i32>
    %4 = stablehlo.and %3, %c : tensor<i32>
    stablehlo.return %4 : tensor<i32>
  }
  // whole: %1 = stablehlo.not %0 : tensor<i32>
  return %1 : tensor<i32>
}
"""


XLA = Setting((routes.STABLEHLO,), routes.PJRT)


def run(setting: Setting, count: int, scale: Scale = SMALL) -> Report:
    cases = [case(0, index, setting.dialects, is_compiled=setting.is_compiled, scale=scale) for index in range(count)]
    report = campaign.run(setting, cases, jobs=1, timeout=SECONDS)
    print(report.summary())
    assert not report.has_failures, "\n".join(finding.report() for finding in report.findings)
    assert report.kinds[RIGHT] >= 0.6 * count
    return report


@needs_jax
def test_programs_with_stablehlo_collectives() -> None:
    run(XLA, 8)


@needs_mpich
def test_programs_with_shard_collectives_on_ranks() -> None:
    run(Setting((routes.SHARD,), routes.RANKS), 6)


@needs_mpich
def test_programs_with_stablehlo_collectives_on_ranks() -> None:
    run(Setting((routes.STABLEHLO,), routes.RANKS), 6)


def test_programs_with_sizes_of_tens() -> None:
    run(Setting((routes.SHARD,), routes.SIMULATED), 6, Scale.of(1, 3, is_large=True))


def test_programs_on_four_to_six_axes_by_both_targets() -> None:
    scale = Scale.of(4, 6)
    report = run(Setting(routes.TARGETS, routes.SIMULATED), 6, scale)
    assert report.received.programs + report.received_uneven.programs == report.kinds[RIGHT]
    assert all(mesh.count("x") >= 3 for mesh in report.meshes)
    assert scale.most_devices == 64


@needs_jax
def test_what_is_wrong_is_found() -> None:
    with Worker(XLA, SECONDS) as worker:
        found = worker.run(WRONG, 0)
        assert (found.kind, found.stage) == (MISMATCH, "run")
        assert "3 of 4 elements differ" in found.detail
        assert worker.run(WRONG.replace("negate", "abs"), 0).kind == RIGHT
        assert worker.run("func.func", 0).kind == INVALID


@needs_jax
def test_a_program_that_does_not_end_is_stopped() -> None:
    with Worker(XLA, timeout=3.0) as worker:
        assert worker.run(ENDLESS, 0).kind == HANG
        worker.timeout = SECONDS
        assert worker.run(WRONG, 0).kind == MISMATCH


def test_an_exception_in_a_pass_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise TypeError("wrong type")

    setting = Setting((routes.SHARD,), routes.SIMULATED)
    assert outcome(WRONG, setting.routes(), 0, lambda _: None).kind == MISMATCH
    monkeypatch.setattr(PropagationPass, "run", run)
    found = outcome(WRONG, setting.routes(), 0, lambda _: None)
    assert found.kind == CRASH
    assert "TypeError: wrong type" in found.detail


@pytest.mark.parametrize("dialect", DIALECTS)
def test_programs_are_of_many_operations(dialect: str) -> None:
    names = set().union(*(op_kinds(case(0, index, [dialect]).text()) for index in range(60)))
    assert len([name for name in names if name.startswith(dialect)]) >= 15


def test_manual_computations_are_replaced() -> None:
    assert "negate" not in whole_text(WRONG)
    assert "%1 = stablehlo.abs %0" in whole_text(WRONG)
