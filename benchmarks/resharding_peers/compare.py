# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison of planners on the reshards of a case."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.lower_bound import lower_bound
from resharding_peers.pairs import ELEMENT_SIZE, Case, Pair
from resharding_peers.peer_plan import Measure, Measured, PeerPlan, Refusal, delivers

WRONG = "wrong"
"""The reason why a planner has no plan if its plan does not lead to the target."""

# None if the requirements of the planner are not installed.
PlanAll = Callable[[Case, Sequence[Pair]], "list[PeerPlan | Refusal] | None"]


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of a planner for a pair: its plan and the plan's measures, or the reason why it has none."""

    plan: PeerPlan | None
    measured: Measured | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a planner for all pairs of a case; means and sums are over the pairs that it plans.

    `at_bound` is a share of all pairs; `collectives` and `time`, in seconds, are means; `our_time` is the mean
    predicted time of our plan for the same pairs. `undelivered` is the number of plans among `simulated` that did not
    bring each element to its target.
    """

    planner: str
    planned: int
    reasons: dict[str, int]
    bytes_over_bound: float
    at_bound: float
    collectives: float
    time: float
    our_time: float
    simulated: int
    undelivered: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A pair for which one of our plans costs more than that of another planner: microseconds or bytes, and moves."""

    pair: str
    objective: str
    ours: str
    cost: float
    moves: str
    peer: str
    peer_cost: float
    peer_moves: str

    def __str__(self) -> str:
        return (
            f"{self.pair}, {self.objective}: {self.ours} {self.cost:.3f}, {self.moves}; "
            f"{self.peer} {self.peer_cost:.3f}, {self.peer_moves}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of a case, ours first, and the pairs that a peer wins; `missing` are planners that are not installed."""

    case: Case
    pairs: int
    ours: tuple[Row, ...]
    peers: tuple[Row, ...]
    missing: tuple[str, ...]
    losses: tuple[Loss, ...]

    @property
    def failures(self) -> int:
        """The number of pairs that a peer wins, that we have no plan for, or whose plan failed in the simulation."""
        unplanned = sum(self.pairs - row.planned for row in self.ours)
        return len(self.losses) + unplanned + sum(row.undelivered for row in (*self.ours, *self.peers))


@dataclass(frozen=True, slots=True)
class Ours:
    """One of our planners: the function that plans, and its objective, time or bytes."""

    plan_all: PlanAll
    objective: Objective

    def cost(self, measured: Measured) -> float:
        """Returns the microseconds or the bytes of a plan."""
        return measured.time * 1e6 if self.objective is Objective.TIME else measured.total_bytes


@dataclass(frozen=True, slots=True)
class Planners:
    """The functions that plan, by the name of the planner; times are compared with the first of `ours`."""

    ours: dict[str, Ours]
    peers: dict[str, PlanAll]


def compare(case: Case, pairs: Sequence[Pair], planners: Planners, model: CostModel, sample: int) -> Comparison:
    """Runs every planner on every pair; simulates `sample` plans of each."""
    measure = Measure(model)
    planned: dict[str, list[Planned]] = {}
    missing = []
    ours = {name: one.plan_all for name, one in planners.ours.items()}
    for name, plan_all in (ours | planners.peers).items():
        plans = plan_all(case, pairs)
        if plans is None:
            missing.append(name)
        else:
            planned[name] = [_planned(plan, case, pair, measure) for plan, pair in zip(plans, pairs, strict=True)]
    bounds = [lower_bound(case.layout(pair.source), case.layout(pair.target), ELEMENT_SIZE).total for pair in pairs]
    best = planned[next(iter(ours))]
    rows = {name: _row(name, plans, best, bounds, case, pairs, sample) for name, plans in planned.items()}
    losses = tuple(
        loss
        for name in ours
        for peer in planners.peers
        if peer in planned
        for loss in _losses(name, planners.ours[name], peer, planned, pairs)
    )
    return Comparison(
        case,
        len(pairs),
        tuple(rows[name] for name in ours),
        tuple(row for name, row in rows.items() if name not in ours),
        tuple(missing),
        losses,
    )


def _planned(plan: PeerPlan | Refusal, case: Case, pair: Pair, measure: Measure) -> Planned:
    if isinstance(plan, Refusal):
        return Planned(None, None, plan.reason)
    try:
        return Planned(plan, measure(plan, case.layout(pair.source), case.layout(pair.target)))
    except ValueError:
        return Planned(plan, None, WRONG)


def _row(
    name: str,
    plans: Sequence[Planned],
    ours: Sequence[Planned],
    bounds: Sequence[int],
    case: Case,
    pairs: Sequence[Pair],
    sample: int,
) -> Row:
    found = [(one.measured, bound) for one, bound in zip(plans, bounds, strict=True) if one.measured is not None]
    our_times = [
        mine.measured.time
        for mine, one in zip(ours, plans, strict=True)
        if mine.measured is not None and one.measured is not None
    ]
    bound = sum(bound for _, bound in found)
    count = max(len(found), 1)
    results = list(_simulated(plans, case, pairs, sample))
    return Row(
        name,
        len(found),
        dict(Counter(one.reason for one in plans if one.measured is None)),
        sum(one.total_bytes for one, _ in found) / bound if bound else 1.0,
        sum(one.total_bytes == least for one, least in found) / max(len(pairs), 1),
        sum(one.collectives for one, _ in found) / count,
        sum(one.time for one, _ in found) / count,
        sum(our_times) / max(len(our_times), 1),
        len(results),
        results.count(False),
    )


def _simulated(plans: Sequence[Planned], case: Case, pairs: Sequence[Pair], sample: int) -> Iterator[bool]:
    """Yields whether plans of a sample deliver; for even shards, the smallest tensor with even shards is simulated."""
    devices = prod(case.sizes)
    if all(size % devices == 0 for size in case.shape):
        case = replace(case, shape=(devices,) * len(case.shape))
    found = [
        (plan.plan, pair)
        for plan, pair in zip(plans, pairs, strict=True)
        if plan.plan is not None and plan.measured is not None
    ]
    for plan, pair in random.Random(0).sample(found, min(sample, len(found))):
        yield delivers(plan, pair, case)


def _losses(
    name: str, ours: Ours, peer: str, planned: dict[str, list[Planned]], pairs: Sequence[Pair]
) -> Iterator[Loss]:
    for pair, mine, theirs in zip(pairs, planned[name], planned[peer], strict=True):
        if mine.measured is None or theirs.measured is None:
            continue
        cost, peer_cost = ours.cost(mine.measured), ours.cost(theirs.measured)
        # Sums of the same steps in another order differ in their last digits.
        if cost > peer_cost * (1 + 1e-9):
            objective = ours.objective.value
            yield Loss(str(pair), objective, name, cost, str(mine.plan), peer, peer_cost, str(theirs.plan))
