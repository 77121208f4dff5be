# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark finds no other planner better than this project's, on a few pairs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import AllGather, AllSlice, AllToAll

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def run(*arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCHMARKS / "resharding.py"), "--json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def test_no_peer_is_better() -> None:
    for one in run("--pairs", "25", "--simulate", "10"):
        *_, fewest_bytes, fewest_by_collectives = one["ours"]
        shardy, upstream, *_ = one["peers"]
        assert one["losses"] == []
        assert all(row["planned"] == one["pairs"] == 25 for row in (*one["ours"], shardy))
        assert all(row["simulated"] == 10 and row["undelivered"] == 0 for row in (*one["ours"], shardy))
        assert fewest_bytes["bytes_over_bound"] == fewest_bytes["at_bound"] == 1.0
        assert fewest_by_collectives["bytes_over_bound"] < shardy["bytes_over_bound"]
        assert 0 < upstream["planned"] == 25 - sum(upstream["reasons"].values())


def test_sizes_that_blocks_do_not_divide() -> None:
    for one in run("--uneven", "--pairs", "5", "--simulate", "1"):
        assert one["losses"] == []
        assert all(row["planned"] == 5 and row["undelivered"] == 0 for row in one["ours"])


def test_planning_time() -> None:
    times = run("--planning-time", "--pairs", "3", "--large-pairs", "1")
    assert all(0 < one["median"] <= one["ninetieth"] <= one["ninety_ninth"] <= one["longest"] for one in times)
    assert [8, 8, 8, 4, 2] in [one["case"]["sizes"] for one in times]


class TestMeasure:
    """The measures of a plan on a mesh of 2x3."""

    @pytest.fixture(autouse=True)
    def _peers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(BENCHMARKS))

    def measured(self, source: Any, target: Any, *moves: Any) -> Any:
        from resharding_peers.pairs import Case
        from resharding_peers.peer_plan import Measure, PeerPlan

        case = Case((2, 3), (6, 6))
        plan = PeerPlan(Grid.of(case.mesh, ()), moves)
        return Measure(CostModel())(plan, case.layout(source), case.layout(target))

    def test_bytes_and_collectives(self) -> None:
        measured = self.measured(((), (0,)), ((0, 1), ()), AllToAll((0,), 1, 0), AllSlice(0, (1,)))
        assert (measured.total_bytes, measured.collectives) == (6 * 9 * 4, 1)
        assert measured.time > 0

    def test_leads_elsewhere(self) -> None:
        with pytest.raises(ValueError, match="leads to"):
            self.measured(((0,), (1,)), ((1, 0), ()), AllToAll((1,), 1, 0))

    def test_cannot_be(self) -> None:
        with pytest.raises(ValueError, match="are in use"):
            self.measured(((), (0,)), ((0,), ()), AllSlice(0, (0,)), AllGather(1, (0,)))
