# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of compiled programs: devices run and hold results between calls, and all resources are released afterwards."""

from __future__ import annotations

import gc
import os
import signal
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hang_guard import wait_until

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.frontend.program import Program
from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import processes
from mlir_shard.runtime.launch.run_folder import PIDS, is_running

ENGINES = ("mpi", "pjrt")
MESH = ms.Mesh({"x": 2, "y": 2})
STEP = """
func.func @main(%w: tensor<8x6xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<8x6xf32>)
    -> (tensor<8x6xf32>, tensor<f32>) {
  %sum = stablehlo.add %w, %x : tensor<8x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %total = stablehlo.reduce(%sum init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x6xf32>, tensor<f32>) -> tensor<f32>
  return %sum, %total : tensor<8x6xf32>, tensor<f32>
}
"""
W, X = np.arange(48, dtype=np.float32).reshape(8, 6), np.full((8, 6), 0.5, np.float32)


def step(text: str = STEP, **specs: Any) -> Program:
    module = ms.parse(text, ms.create_context())
    spec = P("x", "y")
    return Program(module, MESH).annotate(**{"args": [spec, spec], "results": [spec, P()]} | specs)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[processes.RankProcesses]]:
    """Returns the processes that are started, each as a weak reference."""
    found = []
    start = processes.RankProcesses.__init__

    def noted(self: processes.RankProcesses, *args: Any, **kwargs: Any) -> None:
        start(self, *args, **kwargs)
        found.append(weakref.ref(self))

    monkeypatch.setattr(processes.RankProcesses, "__init__", noted)
    return found


def pids_of(started: weakref.ref[processes.RankProcesses]) -> list[int]:
    running = started()
    assert running is not None
    return running._watch.status.read_all(PIDS)


@pytest.mark.parametrize("engine", ENGINES)
def test_devices_stay_up_and_hold_results(engine: str, starts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []
    fetch = processes.RankProcesses.fetch
    monkeypatch.setattr(
        processes.RankProcesses, "fetch", lambda self, tensors: fetched.append(len(tensors)) or fetch(self, tensors)
    )
    with step().compile(engine) as run:
        w: Any = W
        for _ in range(5):
            w, total = run(w, X)
        assert not fetched
        assert isinstance(w, DeviceArray)
        np.testing.assert_array_equal(w, W + 2.5)
        assert float(total) == np.sum(W + 2.5)
        # Each is fetched once.
        assert (w - W).max() == np.asarray(w)[0, 0] == 2.5
        assert fetched == [1, 1]
        pids = pids_of(starts[0])
    assert len(starts) == 1
    wait_until(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize("engine", ENGINES)
def test_donated_results_are_gone(engine: str) -> None:
    with step().compile(engine) as run:
        first, _ = run(W, X)
        second, _ = run(first, X)
        assert first.is_deleted
        with pytest.raises(
            RunError, match="result 'result0' of the program was donated to a later call and is no longer available"
        ):
            np.asarray(first)
        # The other argument is not donated. An array that was read before its donation stays readable.
        np.testing.assert_array_equal(second, W + 1)
        run(W, second)
        third, _ = run(second, X)
        np.testing.assert_array_equal(second, W + 1)
        np.testing.assert_array_equal(third, W + 1.5)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_donated_array_is_the_value_of_one_argument(engine: str) -> None:
    with step().compile(engine) as run:
        held, total = run(W, X)
        message = "argument 'arg1' of the program is the same array as argument 'arg0', and one of them is donated"
        with pytest.raises(RunError, match=message):
            run(held, held)
        # The call is rejected before anything is donated or any device fails.
        again, _ = run(held, np.asarray(held))
        np.testing.assert_array_equal(again, 2 * (W + X))
        assert float(total) == np.sum(W + X)


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_that_are_not_donated_are_kept(engine: str) -> None:
    """An argument is not donated even if the program would write its result to the argument's memory."""
    text = STEP.replace(" {tf.aliasing_output = 0 : i32}", "")
    with step(text).compile(engine) as run:
        held, _ = run(W, X)
        for _ in range(3):
            total, _ = run(held, held)
            np.testing.assert_array_equal(total, 2 * (W + X))
        np.testing.assert_array_equal(held, W + X)


@pytest.mark.parametrize("engine", ENGINES)
def test_results_with_another_sharding_are_brought_there(engine: str, starts: list[Any]) -> None:
    with step(results=[P("y", None), P()]).compile(engine) as run:
        w, _ = run(W, X)
        w, _ = run(w, X)
        np.testing.assert_array_equal(w, W + 1)
    other = step().compile(engine)
    total, _ = other(w, X)
    np.testing.assert_array_equal(total, W + 1.5)
    assert len(starts) == 2
    other.close()


def test_shards_with_padding() -> None:
    text = STEP.replace("8x6", "7x5")
    with step(text).compile() as run:
        w: Any = W[:7, :5]
        for _ in range(3):
            w, total = run(w, X[:7, :5])
        np.testing.assert_array_equal(w, W[:7, :5] + 1.5)
        np.testing.assert_allclose(total, np.sum(W[:7, :5] + 1.5))


def test_processes_end_with_the_last_reference(starts: list[Any]) -> None:
    run = step().compile()
    w, _ = run(W, X)
    pids = pids_of(starts[0])
    assert pids
    del run
    gc.collect()
    # A result still refers to the processes.
    np.testing.assert_array_equal(w, W + X)
    assert all(map(is_running, pids))
    del w, _
    gc.collect()
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_dead_rank_ends_all_and_the_next_call_starts_others(starts: list[Any]) -> None:
    with step().compile() as run:
        w, _ = run(W, X)
        pids = pids_of(starts[0])
        status = starts[0]()._watch.status
        os.kill(status.read(1, PIDS)[0], signal.SIGKILL)
        with pytest.raises(RunError, match=r"rank 1 of 4 was killed by SIGKILL"):
            run(w, X)
        wait_until(lambda: not any(map(is_running, pids)))
        assert not Path(status.directory).exists()
        with pytest.raises(RunError, match="the ranks have ended, and their arrays are lost"):
            np.asarray(w)
        again, _ = run(W, X)
        np.testing.assert_array_equal(again, W + X)
        assert len(starts) == 2


def test_an_interrupt_ends_all(starts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run = step().compile()
    run(W, X)
    pids = pids_of(starts[0])

    def interrupted(*_: Any) -> list[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "wait_for_any", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(W, X)
    wait_until(lambda: not any(map(is_running, pids)))


def test_inputs_are_checked_before_anything_starts(starts: list[Any]) -> None:
    run = step().compile()
    with pytest.raises(RunError, match="the program expects 2 arrays, not 1"):
        run(W)
    with pytest.raises(RunError, match=r"argument 'arg1' of the program is tensor<8x6xf32>, .* shape 2x2"):
        run(W, X[:2, :2])
    assert not starts


def test_a_result_reads_as_an_array() -> None:
    with step().compile() as run:
        w, total = run(W, X)
        assert (w.shape, w.ndim, w.size, w.dtype) == ((8, 6), 2, 48, np.float32)
        assert w.sharding == '<@mesh, [{"x"}, {"y"}]>'
        assert repr(w) == f"<DeviceArray tensor<8x6xf32> sharded as {w.sharding}>"
        assert f"{total:.1f}" == f"{np.sum(W + X):.1f}"
        assert len(w) == len(list(w)) == 8
        np.testing.assert_array_equal(w[2:4], (W + X)[2:4])
        np.testing.assert_array_equal(2 * w + W, 2 * (W + X) + W)
        assert w.astype(np.int32).sum() == (W + X).astype(np.int32).sum()
        assert np.asarray(w, np.float64).dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(w)[0] = 0
        np.array(w)[0] = 0
        assert total > 0
