# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it costs to bring an operand or a result from one sharding to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import DimensionSharding, Mesh, TensorSharding

MOST_STATES = 20
"""The states that the search for a plan reaches if only its price is wanted."""


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


# A sharding, and the mesh that it is on.
Placed = tuple[TensorSharding | None, Mesh]


class ReshardPrices(Protocol):
    """Who knows what it costs to bring a tensor from one layout to another; `least_latency` is what any move waits."""

    @property
    def least_latency(self) -> float:
        """In seconds."""
        ...

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """Returns the price. Raises ValueError if no plan exists."""
        ...

    def least(self, source: TensorLayout, target: TensorLayout, element_size: int) -> float:
        """Returns seconds that the price is not less than, but for rounding, sooner than the price is known.

        Raises ValueError if no plan exists.
        """
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

    def least(self, source: TensorLayout, target: TensorLayout, element_size: int) -> float:
        """What no plan takes less seconds than; ValueError where there is none."""
        return self._planner.least(source, target, element_size)


@dataclass(frozen=True, slots=True)
class OpTensor:
    """The shape of an operand or a result, in elements, and the bytes of an element."""

    shape: tuple[int, ...]
    element_size: int


class Reshardings:
    """The prices of changes of sharding, computed once for each."""

    def __init__(self, prices: ReshardPrices) -> None:
        self._prices = prices
        self._known: dict[object, Price] = {}
        self._least: dict[object, float] = {}
        self._layouts: dict[tuple[Placed, OpTensor], TensorLayout] = {}
        self.least_latency = prices.least_latency

    def price(self, source: Placed, target: Placed, tensor: OpTensor) -> Price:
        """From one sharding on its mesh to another; raises ValueError where no plan leads from one to the other."""
        key = source, target, tensor
        found = self._known.get(key)
        if found is None:
            layouts = self._layout(source, tensor), self._layout(target, tensor)
            is_same = layouts[0] == layouts[1]
            found = self._known[key] = Price() if is_same else self._prices.price(*layouts, tensor.element_size)
        return found

    def least(self, source: Placed, target: Placed, tensor: OpTensor) -> float:
        """Seconds that the price is not less than, but for rounding: the price itself where it is known."""
        key = source, target, tensor
        found = self._known.get(key)
        if found is not None:
            return found.seconds
        least = self._least.get(key)
        if least is None:
            layouts = self._layout(source, tensor), self._layout(target, tensor)
            is_same = layouts[0] == layouts[1]
            least = self._least[key] = 0.0 if is_same else self._prices.least(*layouts, tensor.element_size)
        return least

    def _layout(self, placed: Placed, tensor: OpTensor) -> TensorLayout:
        key = placed, tensor
        found = self._layouts.get(key)
        if found is None:
            found = self._layouts[key] = layout_of(*placed, tensor)
        return found


def layout_of(sharding: TensorSharding | None, mesh: Mesh, tensor: OpTensor) -> TensorLayout:
    """The layout, of a sharding in which only what places data is left."""
    if sharding is None:
        return TensorLayout(TensorSharding.fully_closed(len(tensor.shape), "mesh"), mesh, tensor.shape)
    dims = tuple([DimensionSharding(dim.axes, is_closed=True) for dim in sharding.dim_shardings])
    partial = TensorSharding("mesh", dims, (), sharding.unreduced_axes, sharding.reduction_op)
    return TensorLayout(partial, mesh, tensor.shape)
