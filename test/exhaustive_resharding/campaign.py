# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans and simulates many reshards, and counts plans and failures."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from time import perf_counter
from typing import Protocol

from exhaustive_resharding.delivery import Deliveries
from exhaustive_resharding.problems import Problems, Shape
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout

ELEMENT_SIZE = 4


class Plans(Protocol):
    """The interface of planners."""

    def plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan: ...


def planners() -> dict[str, Plans]:
    """Returns the planners under test by name."""
    return {
        f"{objective.name.lower()}, {'any step' if is_any else 'collectives only'}": Planner(
            CostModel(objective=objective), uses_direct_exchange=is_any
        )
        for objective, is_any in product((Objective.TIME, Objective.BYTES), (True, False))
    }


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that does not deliver, or the failure of a planner."""

    planner: str
    source: TensorLayout
    target: TensorLayout
    fault: str

    def __str__(self) -> str:
        ends = f"{self.source.sharding} on {self.source.mesh} to {self.target.sharding} on {self.target.mesh}"
        return f"{list(self.source.shape)} from {ends}, by {self.planner}: {self.fault}"


@dataclass
class Tally:
    """The outcomes of the problems of one kind."""

    pairs: int = 0
    plans: int = 0
    steps: int = 0
    simulated: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Adds the counts of another tally."""
        self.pairs += other.pairs
        self.plans += other.plans
        self.steps += other.steps
        self.simulated += other.simulated
        self.seconds += other.seconds
        self.failures += other.failures


def run(problems: Problems, sample: int | None = None) -> Tally:
    """Plans and simulates all pairs for each shape, or `sample` of them, by each planner."""
    tally = Tally()
    for shape in problems.shapes:
        tally.add(run_shape(problems, shape, sample))
    return tally


def run_shape(problems: Problems, shape: Shape, sample: int | None = None) -> Tally:
    """Plans and simulates all pairs for one shape, or `sample` of them."""
    tally = Tally()
    begin = perf_counter()
    pairs: Iterable[tuple[TensorLayout, TensorLayout]] = problems.layouts(shape)
    if sample is not None:
        pairs = random.Random(f"{problems} {shape}").sample(list(pairs), sample)
    carry(pairs, planners(), tally)
    tally.seconds = perf_counter() - begin
    return tally


def carry(pairs: Iterable[tuple[TensorLayout, TensorLayout]], planners: Mapping[str, Plans], tally: Tally) -> None:
    """Plans and simulates pairs, all of one shape, and counts them."""
    deliveries = Deliveries()
    for source, target in pairs:
        tally.pairs += 1
        for name, planner in planners.items():
            tally.plans += 1
            try:
                plan = planner.plan(source, target, ELEMENT_SIZE)
                fault = deliveries.fault(plan, source, target)
            except ValueError as error:
                fault = str(error)
            else:
                tally.steps += len(plan.steps)
            if fault is not None:
                tally.failures.append(Failure(name, source, target, fault))
    tally.simulated += deliveries.num_simulated
