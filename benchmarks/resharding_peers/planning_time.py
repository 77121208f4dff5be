# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of planning, over the pairs of a case."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.planner import Planner
from resharding_peers.pairs import ELEMENT_SIZE, Case, Pair


@dataclass(frozen=True, slots=True)
class PlanningTime:
    """Processor seconds for a plan and its figures: quantiles over `pairs` plans, and the number proved optimal.

    Garbage collection is disabled, as in `timeit`, because most garbage is from the benchmark's other planners.
    `gap` is the largest share by which a plan may cost more than the best.
    """

    planner: str
    case: Case
    pairs: int
    median: float
    ninetieth: float
    ninety_ninth: float
    longest: float
    optimal: int
    gap: float


def planning_times(case: Case, pairs: Sequence[Pair], model: CostModel) -> list[PlanningTime]:
    """Times the plans of all pairs: each by a new planner, then all by one planner, then all again by the same one."""
    result = []
    for uses_direct_exchange, kind in ((True, "direct exchange"), (False, "collectives only")):
        one, *others = (Planner(model, uses_direct_exchange=uses_direct_exchange) for _ in range(len(pairs) + 1))
        result += [
            _measured(f"{kind}, a new planner each", case, pairs, others),
            _measured(f"{kind}, one planner", case, pairs, [one] * len(pairs)),
            _measured(f"{kind}, planned before", case, pairs, [one] * len(pairs)),
        ]
    return result


def _measured(title: str, case: Case, pairs: Sequence[Pair], planners: Sequence[Planner]) -> PlanningTime:
    seconds, gaps = [], []
    for pair, planner in zip(pairs, planners, strict=True):
        source, target = case.layout(pair.source), case.layout(pair.target)
        gc.disable()
        start = time.process_time()
        plan = planner.plan(source, target, ELEMENT_SIZE)
        figures = plan.time, plan.total_bytes, plan.bytes_received, plan.peak_memory, plan.bytes_over_bound
        seconds.append(time.process_time() - start)
        gc.enable()
        assert min(figures) >= 0
        gaps.append(plan.gap)
    seconds.sort()

    def quantile(share: float) -> float:
        return seconds[min(int(share * len(seconds)), len(seconds) - 1)]

    return PlanningTime(
        title, case, len(pairs), quantile(0.5), quantile(0.9), quantile(0.99), seconds[-1], gaps.count(0.0), max(gaps)
    )
