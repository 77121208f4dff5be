# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of waiting for ranks, and for their launcher after one of them has failed, with a simulated clock."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import processes
from mlir_shard.runtime.launch.run_folder import COMPLETED, ENDED, End, RankStatus


class Launcher:
    """A launcher that ends at a given time, if ever, by the clock `now`, which waiting advances."""

    def __init__(self, ends_at: float = math.inf) -> None:
        self.now, self._ends_at = 0.0, ends_at

    def poll(self) -> int | None:
        return 0 if self.now >= self._ends_at else None

    def is_done(self, seconds: float) -> bool:
        """Advances the clock by at most `seconds`, and returns True if the launcher has ended."""
        self.now = min(self.now + seconds, max(self.now, self._ends_at))
        return self.now >= self._ends_at

    def is_never_done(self, seconds: float) -> bool:
        """Advances the clock and returns False."""
        self.now += seconds
        return False


@pytest.fixture
def status(tmp_path: Path) -> RankStatus:
    return RankStatus(tmp_path)


def watch(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch, status: RankStatus, ends: dict[int, str], timeout: float | None
) -> processes._Watch:
    for rank, what in ends.items():
        status.write(rank, ENDED, End(what, 0))
    monkeypatch.setattr(processes.time, "monotonic", lambda: launcher.now)
    process: Any = launcher
    return processes._Watch(process, status, 3, timeout, None)


def test_a_launcher_that_goes_on_after_a_failure_is_given_up_soon(
    monkeypatch: pytest.MonkeyPatch, status: RankStatus
) -> None:
    launcher = Launcher()
    with pytest.raises(RunError, match="rank 1 of 3 was killed"):
        watch(launcher, monkeypatch, status, {1: "was killed"}, None).until(launcher.is_done)
    assert processes._SECONDS_TO_END <= launcher.now <= processes._SECONDS_TO_END + 0.5


def test_a_launcher_that_ends_after_a_failure_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, status: RankStatus
) -> None:
    launcher = Launcher(ends_at=1.0)
    watched = watch(launcher, monkeypatch, status, {1: "was killed"}, None)
    watched.until(launcher.is_done)
    assert launcher.now == 1.0
    with pytest.raises(RunError, match="rank 1 of 3 was killed"):
        watched.check_end()


def test_ranks_that_have_completed_or_not_ended_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, status: RankStatus
) -> None:
    launcher = Launcher(ends_at=100.0)
    watch(launcher, monkeypatch, status, {0: COMPLETED, 2: COMPLETED}, None).until(launcher.is_done)
    assert launcher.now == 100.0


def test_the_time_of_a_run_is_up_before_patience_is(monkeypatch: pytest.MonkeyPatch, status: RankStatus) -> None:
    launcher = Launcher()
    with pytest.raises(RunError, match="the program was stopped after 1 s"):
        watch(launcher, monkeypatch, status, {1: "was killed"}, 1.0).until(launcher.is_done)
    assert launcher.now == pytest.approx(1.0)


def test_the_time_of_each_call_is_its_own(monkeypatch: pytest.MonkeyPatch, status: RankStatus) -> None:
    launcher = Launcher()
    watched = watch(launcher, monkeypatch, status, {}, 1.0)
    launcher.now = 5.0
    watched.restart()
    with pytest.raises(RunError, match="the program was stopped after 1 s"):
        watched.until(launcher.is_done)
    assert launcher.now == pytest.approx(6.0)


def test_a_launcher_may_end_right_after_it_was_looked_at(monkeypatch: pytest.MonkeyPatch, status: RankStatus) -> None:
    launcher = Launcher(ends_at=1.0)
    looks = iter([False, True])

    def is_done(seconds: float) -> bool:
        launcher.now = 1.0
        return next(looks)

    watch(launcher, monkeypatch, status, dict.fromkeys(range(3), COMPLETED), None).until(is_done)


def test_ranks_that_end_without_an_answer_have_failed(monkeypatch: pytest.MonkeyPatch, status: RankStatus) -> None:
    launcher = Launcher(ends_at=1.0)
    watched = watch(launcher, monkeypatch, status, dict.fromkeys(range(3), COMPLETED), None)
    with pytest.raises(RunError, match="the ranks have ended before all of them answered"):
        watched.until(launcher.is_never_done)
