# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The price of resharding an operand or a result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from mlir_shard._native import ReshardSearch
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import DimensionSharding, Mesh, TensorSharding

MOST_STATES = 20
"""The most states that the search for a plan reaches if only its price is wanted."""
MOST_CACHED = 1 << 14
"""The prices that are cached: the least recently used are evicted."""


@dataclass(frozen=True, slots=True)
class Price:
    """A price in seconds: the time to receive all bytes, and the latency besides."""

    moving: float = 0.0
    latency: float = 0.0

    @property
    def seconds(self) -> float:
        """The sum of both."""
        return self.moving + self.latency

    def __add__(self, other: Price) -> Price:
        return Price(self.moving + other.moving, self.latency + other.latency)

    def __truediv__(self, count: int) -> Price:
        return Price(self.moving / count, self.latency / count)


# A sharding, and the mesh that it is on.
Placed = tuple[TensorSharding | None, Mesh]


class ReshardPrices(Protocol):
    """Prices of resharding a tensor from one layout to another; `least_latency` is the least latency of any move."""

    @property
    def least_latency(self) -> float:
        """The least latency, in seconds."""
        ...

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """Returns the price. Raises ValueError if no plan exists."""
        ...

    def search(self, grid: Grid, shape: tuple[int, ...], element_size: int) -> ReshardSearch | None:
        """Returns the search that bounds prices of a tensor between placements on a finest grid, or None."""
        ...


class PlannedPrices:
    """The prices of a planner's plans; `moving` is computed with the default bandwidth of its cost model."""

    def __init__(self, planner: Planner | None = None) -> None:
        self._planner = planner or Planner(most_states=MOST_STATES)

    @property
    def least_latency(self) -> float:
        """The latency of the fastest link, in seconds."""
        model = self._planner.cost_model
        return min((model.default, *(link for _, link in model.links)), key=lambda link: link.latency).latency

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """Returns the price of the plan. Raises ValueError if no plan exists."""
        totals = self._planner.totals(source, target, element_size)
        moving = min(totals.most_received / self._planner.cost_model.default.bandwidth, totals.seconds)
        return Price(moving, totals.seconds - moving)

    def search(self, grid: Grid, shape: tuple[int, ...], element_size: int) -> ReshardSearch | None:
        """Returns the planner's native search."""
        return self._planner.native_search(grid, shape, element_size)


@dataclass(frozen=True, slots=True)
class OpTensor:
    """The shape of an operand or a result, in elements, and the bytes of an element."""

    shape: tuple[int, ...]
    element_size: int


class Reshardings:
    """The prices of changes of sharding, cached."""

    def __init__(self, prices: ReshardPrices) -> None:
        self._prices = prices
        self._cached_price = lru_cache(maxsize=MOST_CACHED)(self._price)
        self._layout = lru_cache(maxsize=MOST_CACHED)(layout_of)
        self.least_latency = prices.least_latency

    def price(self, source: Placed, target: Placed, tensor: OpTensor) -> Price:
        """Returns the price of resharding between two shardings on meshes. Raises ValueError if no plan exists."""
        return self._cached_price(source, target, tensor)

    def search(self, grid: Grid, tensor: OpTensor) -> ReshardSearch | None:
        """Returns the search that bounds prices of a tensor between placements on a finest grid, or None."""
        return self._prices.search(grid, tensor.shape, tensor.element_size)

    def _price(self, source: Placed, target: Placed, tensor: OpTensor) -> Price:
        before, after = self._layout(*source, tensor), self._layout(*target, tensor)
        return Price() if before == after else self._prices.price(before, after, tensor.element_size)


def layout_of(sharding: TensorSharding | None, mesh: Mesh, tensor: OpTensor) -> TensorLayout:
    """Returns the layout of a sharding without the properties that do not place data."""
    if sharding is None:
        return TensorLayout(TensorSharding.fully_closed(len(tensor.shape), "mesh"), mesh, tensor.shape)
    dims = tuple([DimensionSharding(dim.axes, is_closed=True) for dim in sharding.dim_shardings])
    partial = TensorSharding("mesh", dims, (), sharding.unreduced_axes, sharding.reduction_op)
    return TensorLayout(partial, mesh, tensor.shape)
