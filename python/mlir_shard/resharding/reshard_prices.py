# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What changes of sharding cost, as far as choosing between them goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout

MOST_STATES = 20
"""The states that the search for a plan reaches where only its price is asked for."""


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds: what it takes to receive all bytes, and what has to be waited for besides."""

    moving: float = 0.0
    latency: float = 0.0

    @property
    def seconds(self) -> float:
        """Both."""
        return self.moving + self.latency

    def __add__(self, other: Price) -> Price:
        return Price(self.moving + other.moving, self.latency + other.latency)

    def __truediv__(self, count: int) -> Price:
        return Price(self.moving / count, self.latency / count)


class ReshardPrices(Protocol):
    """Who knows what it costs to bring a tensor from one layout to another; `least_latency` is what any move waits."""

    @property
    def least_latency(self) -> float:
        """In seconds."""
        ...

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """The price; ValueError where there is no way."""
        ...


class PlannedPrices:
    """The prices of a planner's plans; `moving` is at the bandwidth that its cost model has for most axes."""

    def __init__(self, planner: Planner | None = None) -> None:
        self._planner = planner or Planner(most_states=MOST_STATES)

    @property
    def least_latency(self) -> float:
        """That of the fastest link, in seconds."""
        model = self._planner.cost_model
        return min((model.default, *(link for _, link in model.links)), key=lambda link: link.latency).latency

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """The price of the plan; ValueError where there is none."""
        plan = self._planner.plan(source, target, element_size)
        received = sum(step.most_bytes for step in plan.steps)
        moving = min(received / self._planner.cost_model.default.bandwidth, plan.time)
        return Price(moving, plan.time - moving)
