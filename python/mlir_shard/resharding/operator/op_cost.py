# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an op costs when it is computed along given axes of its factors, and what reshards around it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import Protocol

from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.common_axes import AxesPerFactor, mesh_of
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, is_strict_prefix, sort_and_merge, total_size
from mlir_shard.sharding.layout import block_size
from mlir_shard.sharding.projection import ShardingProjection

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


class ReshardPrices(Protocol):
    """Who knows what it costs to bring a tensor from one layout to another; `least_latency` is what any move waits."""

    @property
    def least_latency(self) -> float:
        """In seconds."""
        ...

    def price(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Price:
        """Returns the price. Raises ValueError if no plan exists."""
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


@dataclass(frozen=True, slots=True)
class OpTensor:
    """The shape of an operand or a result, in elements, and the bytes of an element."""

    shape: tuple[int, ...]
    element_size: int


@dataclass(frozen=True, slots=True)
class OpProblem:
    """An op whose factors are to get axes of `mesh`.

    `shardings` are those that its operands have and its results are wanted in, `tensors` what these are, operands
    first in both; None is one without sharding, which is replicated. None of them is unreduced. `windows` are those
    known along permutation factors. An op that `indexes` combines no element with all others: it reads and writes.
    Each of `summands` partial sums that are reduced together costs its part of the reduction.
    """

    rule: OpShardingRule
    shardings: tuple[TensorSharding | None, ...]
    tensors: tuple[OpTensor, ...]
    mesh: Mesh
    meshes: tuple[tuple[str, Mesh], ...] = ()
    reduction: ReductionOp = ReductionOp.SUM
    windows: tuple[FactorWindow, ...] = ()
    indexes: bool = False
    summands: int = 1

    @property
    def projection(self) -> ShardingProjection:
        """The shardings by factor."""
        count = len(self.rule.operand_mappings)
        operands, results = self.shardings[:count], self.shardings[count:]
        return ShardingProjection.build(operands, results, self.rule, self.mesh, closed_if_missing=True)


class Reshardings:
    """The prices of changes of sharding, computed once for each."""

    def __init__(self, prices: ReshardPrices) -> None:
        self._prices = prices
        self._known: dict[object, Price] = {}
        self.least_latency = prices.least_latency

    def price(
        self,
        source: tuple[TensorSharding | None, Mesh],
        target: tuple[TensorSharding | None, Mesh],
        tensor: OpTensor,
    ) -> Price:
        """From one sharding on its mesh to another; raises ValueError if there is no plan between them."""
        key = source, target, tensor
        if key not in self._known:
            layouts = (_layout(*source, tensor), _layout(*target, tensor))
            is_same = layouts[0] == layouts[1]
            self._known[key] = Price() if is_same else self._prices.price(*layouts, tensor.element_size)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class _TakenDim:
    """A dimension of a tensor with some axes along its factors, on one of which the tensor is resharded.

    `elements` are those of a shard after it, and `kept` those that a device has in common with its shard before, if the
    axes continue each other. Both are 0 and `is_even` is not set where shards are uneven.
    """

    sharding: DimensionSharding
    is_even: bool = False
    elements: int = 0
    kept: int = 0


class OpCosts:
    """The costs of one op for different axes of its factors, of which `known` are one choice."""

    def __init__(self, problem: OpProblem, known: AxesPerFactor, reshardings: Reshardings, rates: DeviceRates) -> None:
        self._problem = problem
        self._reshardings = reshardings
        self._rates = rates
        self._projection = problem.projection
        self._mappings = problem.rule.tensor_mappings
        meshes = dict(problem.meshes)
        self._own_meshes = [_own_mesh(sharding, meshes, problem.mesh) for sharding in problem.shardings]
        self._prices: dict[tuple[int, AxesPerFactor], Price] = {}
        self._bounds: dict[tuple[int, AxesPerFactor], Price] = {}
        self._dims: dict[tuple[int, int, AxesPerFactor], _TakenDim] = {}
        self._compute_costs: dict[tuple[int, ...], float] = {}
        self._sizes: dict[Axes, int] = {}
        # Of each tensor the bytes of an element, and the size and factors of each dimension.
        self._sized_dims = [
            (
                tensor.element_size,
                [(size, dim.factor_indices) for size, dim in zip(tensor.shape, mapping.dim_mappings, strict=True)],
            )
            for tensor, mapping in zip(problem.tensors, self._mappings, strict=True)
        ]
        self._factors = [self._factors_of(index) for index in range(len(self._mappings))]
        self.known = known

    @cached_property
    def _known_price(self) -> Price:
        prices = (self.tensor_price(index, self.known) for index in range(len(self._mappings)))
        return sum(prices, Price())

    @cached_property
    def _known_compute(self) -> float:
        return self._compute(self.known)

    def least_latency(self, compute: float) -> float:
        """What is waited for at least where a device computes for so long."""
        return self._known_price.latency if compute > self._known_compute else 0.0

    def _factors_of(self, index: int) -> tuple[int, ...]:
        """The factors on which it depends what a tensor costs."""
        rule = self._problem.rule
        own = tuple(factor for dim in self._mappings[index].dim_mappings for factor in dim.factor_indices)
        return own + rule.reduction_factors if self._is_result(index) else own

    def _is_result(self, index: int) -> bool:
        return index >= len(self._problem.rule.operand_mappings)

    def cost(self, axes_per_factor: Sequence[Axes]) -> float:
        """All of it; ValueError where a tensor cannot lie so."""
        found = self.cost_below(axes_per_factor, inf)
        assert found is not None
        return found

    def cost_below(self, axes_per_factor: Sequence[Axes], limit: float) -> float | None:
        """All of it where that is less than `limit`, else None, as soon as that is seen; ValueError as `cost`."""
        indices = range(len(self._mappings))
        left = {index: self.tensor_bound(index, axes_per_factor) for index in indices}
        compute = self._compute(axes_per_factor)
        least = self.least_latency(compute)
        others = compute + self._neighbour_cost(axes_per_factor)
        price = Price()
        for index in sorted(indices, key=lambda index: -left[index].moving):
            bound = sum(left.values(), price)
            if others + bound.moving + max(bound.latency, least) >= limit:
                return None
            price += self.tensor_price(index, axes_per_factor)
            del left[index]
        cost = others + price.moving + max(price.latency, least)
        return cost if cost < limit else None

    def tensor_bound(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        """What `tensor_price` is at least.

        The device that has to receive most has nothing of its block where the axes of a dimension do not continue each
        other, and has to receive all of it where it is reduced.
        """
        key = self._key(index, axes_per_factor)
        if key not in self._bounds:
            self._bounds[key] = self._tensor_bound(index, axes_per_factor)
        return self._bounds[key]

    def tensor_price(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        """What it costs to reshard an operand before the op, or to reduce and reshard a result after it."""
        key = self._key(index, axes_per_factor)
        if key not in self._prices:
            self._prices[key] = self._tensor_price(index, axes_per_factor)
        return self._prices[key]

    def sharding(self, index: int, axes_per_factor: Sequence[Axes]) -> TensorSharding:
        """How the op takes an operand or leaves a result."""
        tensor = self._projection.tensors[index]
        dims = tuple(
            [self._dim(index, dim, axes_per_factor).sharding for dim in range(len(self._mappings[index].dim_mappings))]
        )
        return TensorSharding(
            self._problem.mesh, dims, tensor.replicated_axes, tensor.unreduced_axes, tensor.reduction_op
        )

    def _dim(self, index: int, dim: int, axes_per_factor: Sequence[Axes]) -> _TakenDim:
        factors = self._mappings[index].dim_mappings[dim].factor_indices
        key = index, dim, tuple([axes_per_factor[factor] for factor in factors])
        found = self._dims.get(key)
        if found is None:
            found = self._dims[key] = self._taken_dim(index, dim, axes_per_factor)
        return found

    def _taken_dim(self, index: int, dim: int, axes_per_factor: Sequence[Axes]) -> _TakenDim:
        rule, mesh, mapping = self._problem.rule, self._problem.mesh, self._mappings[index].dim_mappings[dim]
        tensor = self._projection.tensors[index]
        for factor in mapping.factor_indices:
            tensor = tensor.update(factor, axes_per_factor[factor])
        sharding = tensor.join_dimension(mapping, rule.factor_sizes, mesh)
        own, size = self._problem.shardings[index], self._problem.tensors[index].shape[dim]
        given = () if own is None else own.dim_shardings[dim].axes
        old, new = (sharding.axes, given) if self._is_result(index) else (given, sharding.axes)
        blocks, new_blocks = self._size(old), self._size(new)
        if size % blocks or size % new_blocks:
            return _TakenDim(sharding)
        continues = old == new or is_strict_prefix(old, new) or is_strict_prefix(new, old)
        return _TakenDim(sharding, True, size // new_blocks, size // max(blocks, new_blocks) if continues else 0)

    def _key(self, index: int, axes_per_factor: Sequence[Axes]) -> tuple[int, AxesPerFactor]:
        return index, tuple([axes_per_factor[factor] for factor in self._factors[index]])

    def _size(self, axes: Axes) -> int:
        found = self._sizes.get(axes)
        if found is None:
            found = self._sizes[axes] = total_size(axes, self._problem.mesh)
        return found

    def compute_cost(self, blocks: Sequence[int]) -> float:
        """What a device computes where each factor is in so many blocks; nothing for an op without operands, which is
        no work at run time."""
        if not self._problem.rule.operand_mappings:
            return 0.0
        key = tuple(blocks)
        found = self._compute_costs.get(key)
        if found is None:
            found = self._compute_costs[key] = self._compute_cost(key)
        return found

    def _compute_cost(self, blocks: Sequence[int]) -> float:
        rule = self._problem.rule
        local = [block_size(max(size, 1), count) for size, count in zip(rule.factor_sizes, blocks, strict=True)]
        operations = 0 if self._problem.indexes else prod(local) * (2 if rule.reduction_factors else 1)
        num_bytes = 0
        for of_tensor, dims in self._sized_dims:
            for size, factors in dims:
                count = 1
                for factor in factors:
                    count *= blocks[factor]
                of_tensor *= block_size(size, count)
            num_bytes += of_tensor
        return self._rates.seconds(operations, num_bytes)

    def _tensor_bound(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        tensor = self._problem.tensors[index]
        if self._own_meshes[index] != self._problem.mesh:
            return Price()
        is_reduced = self._is_result(index) and any(
            axes_per_factor[one] for one in self._problem.rule.reduction_factors
        )
        elements, kept = 1, 0 if is_reduced else 1
        for dim in range(len(tensor.shape)):
            taken = self._dim(index, dim, axes_per_factor)
            if not taken.is_even:
                return Price()
            elements *= taken.elements
            kept *= taken.kept
        num_bytes = (elements - kept) * tensor.element_size
        shared = self._problem.summands if is_reduced else 1
        return Price(
            num_bytes / self._rates.network / shared, self._reshardings.least_latency / shared if num_bytes else 0.0
        )

    def _tensor_price(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        problem, tensor = self._problem, self._problem.tensors[index]
        own = problem.shardings[index], self._own_meshes[index]
        made = self.sharding(index, axes_per_factor), problem.mesh
        if not self._is_result(index):
            return self._reshardings.price(own, made, tensor)
        reduced = [axis for factor in problem.rule.reduction_factors for axis in axes_per_factor[factor]]
        if not reduced:
            return self._reshardings.price(made, own, tensor)
        unreduced = sort_and_merge(reduced, problem.mesh)
        partial = replace(made[0], unreduced_axes=unreduced, reduction_op=problem.reduction), problem.mesh
        if own[1] == problem.mesh:
            return self._reshardings.price(partial, own, tensor) / problem.summands
        moved = self._reshardings.price(made, own, tensor)
        return self._reshardings.price(partial, made, tensor) / problem.summands + moved

    def _compute(self, axes_per_factor: Sequence[Axes]) -> float:
        return self.compute_cost([self._size(axes) for axes in axes_per_factor])

    def _neighbour_cost(self, axes_per_factor: Sequence[Axes]) -> float:
        num_bytes = 0.0
        for factor in self._problem.rule.permutation_factors:
            if not axes_per_factor[factor]:
                continue
            windows = [window for window in self._problem.windows if window.factor == factor]
            for window in windows:
                blocks = self._size(axes_per_factor[factor])
                num_bytes += window.received(blocks) * self._local_bytes(window.operand, axes_per_factor)
            if not windows:
                num_bytes += max(
                    self._local_bytes(index, axes_per_factor)
                    for index, mapping in enumerate(self._mappings)
                    if mapping.contains_factor(factor)
                )
        return num_bytes / self._rates.network

    def _local_bytes(self, index: int, axes_per_factor: Sequence[Axes]) -> int:
        tensor = self._problem.tensors[index]
        layout = _layout(self.sharding(index, axes_per_factor), self._problem.mesh, tensor)
        return prod(layout.local_shape) * tensor.element_size


def _own_mesh(sharding: TensorSharding | None, meshes: Mapping[str, Mesh], mesh: Mesh) -> Mesh:
    """The mesh a tensor is on; the op's if it is replicated."""
    if sharding is None or sharding.is_fully_replicated:
        return mesh
    return mesh_of(sharding, meshes) or mesh


def _layout(sharding: TensorSharding | None, mesh: Mesh, tensor: OpTensor) -> TensorLayout:
    """The layout, of a sharding in which only what places data is left."""
    if sharding is None:
        return TensorLayout(TensorSharding.fully_closed(len(tensor.shape), "mesh"), mesh, tensor.shape)
    closed = TensorSharding.closed_with((dim.axes for dim in sharding.dim_shardings), "mesh")
    partial = replace(closed, unreduced_axes=sharding.unreduced_axes, reduction_op=sharding.reduction_op)
    return TensorLayout(partial, mesh, tensor.shape)
