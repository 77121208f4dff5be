# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a run waits for its launcher after a rank has failed: the time is a clock of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from mlir_shard.runtime.launch import processes
from mlir_shard.runtime.launch.run_folder import COMPLETED, ENDED, End, RankStatus


class Launcher:
    """One that ends at a time, if ever; a wait takes as long as is asked for, by the clock `now`."""

    def __init__(self, ends_at: float | None = None) -> None:
        self.now, self._ends_at = 0.0, ends_at

    def wait(self, seconds: float) -> int:
        if self._ends_at is not None and self._ends_at <= self.now + seconds:
            self.now = self._ends_at
            return 0
        self.now += seconds
        raise subprocess.TimeoutExpired("launcher", seconds)


def wait(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, folder: Path, ends: dict[int, str], timeout: float | None
) -> int:
    status = RankStatus(folder)
    for rank, what in ends.items():
        status.write(rank, ENDED, End(what, 0))
    monkeypatch.setattr(processes.time, "monotonic", lambda: launcher.now)
    process: Any = launcher
    return processes._Observed(status, 3, None).wait(process, timeout)


def test_a_launcher_that_goes_on_after_a_failure_is_given_up_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launcher = Launcher()
    assert wait(launcher, monkeypatch, tmp_path, {1: "was killed"}, None) == 1
    assert processes._SECONDS_TO_END <= launcher.now <= processes._SECONDS_TO_END + 0.5


def test_a_launcher_that_ends_after_a_failure_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = Launcher(ends_at=1.0)
    assert wait(launcher, monkeypatch, tmp_path, {1: "was killed"}, None) == 0
    assert launcher.now == 1.0


def test_ranks_that_have_completed_or_not_ended_are_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = Launcher(ends_at=100.0)
    assert wait(launcher, monkeypatch, tmp_path, {0: COMPLETED, 2: COMPLETED}, None) == 0
    assert launcher.now == 100.0


def test_the_time_of_a_run_is_up_before_patience_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = Launcher()
    with pytest.raises(subprocess.TimeoutExpired):
        wait(launcher, monkeypatch, tmp_path, {1: "was killed"}, 1.0)
    assert launcher.now == pytest.approx(1.0)
