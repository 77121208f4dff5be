# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of an op that is computed along given axes of its factors, and of the reshards around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf, prod

from mlir_shard._native import ReshardSearch
from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_search import ROUNDING
from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_problem import ComputeCosts, OpProblem
from mlir_shard.resharding.operator.reshard_prices import Placed, Price, Reshardings, layout_of
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding import DimensionSharding, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, is_strict_prefix, sort_and_merge
from mlir_shard.sharding.projection import FactorSharding, join_factors


class OpCosts:
    """The costs of one op for different axes of its factors; `known` is one choice of axes."""

    def __init__(self, problem: OpProblem, known: AxesPerFactor, reshardings: Reshardings, rates: DeviceRates) -> None:
        self._problem = problem
        self._reshardings = reshardings
        self.compute = ComputeCosts(problem, rates)
        self.rates = rates
        self._projection = problem.projection
        self._with_overflow = problem.projection.tensors_with_overflow
        self._mappings = problem.rule.tensor_mappings
        self._own_meshes = problem.own_meshes
        self._prices: dict[tuple[int, AxesPerFactor], Price] = {}
        self._dims: dict[tuple[int, int, AxesPerFactor], DimensionSharding] = {}
        self._factors = [self._factors_of(index) for index in range(len(self._mappings))]
        self.known = known

    @property
    def move_latency(self) -> float:
        """The least latency of any reshard, in seconds."""
        return self._reshardings.least_latency

    @cached_property
    def known_price(self) -> Price:
        """The price of all reshards with the known axes."""
        prices = (self.tensor_price(index, self.known) for index in range(len(self._mappings)))
        return sum(prices, Price())

    @cached_property
    def known_compute(self) -> float:
        """The seconds that a device computes with the known axes."""
        return self.compute.of(self.known)

    def least_latency(self, compute: float) -> float:
        """Returns the least latency to count for an op that a device computes in `compute` seconds.

        It is the latency of the reshards with the known axes if the device computes longer than with these, else 0.
        """
        return self.known_price.latency if compute > self.known_compute else 0.0

    def _factors_of(self, index: int) -> tuple[int, ...]:
        """Returns the factors that the price of a tensor depends on."""
        rule = self._problem.rule
        own = tuple(factor for dim in self._mappings[index].dim_mappings for factor in dim.factor_indices)
        return own + rule.reduction_factors if self._is_result(index) else own

    def _is_result(self, index: int) -> bool:
        return index >= len(self._problem.rule.operand_mappings)

    def cost(self, axes_per_factor: Sequence[Axes]) -> float:
        """Returns the total cost, in seconds. Raises ValueError if a tensor cannot be sharded along these axes."""
        found = self.cost_below(axes_per_factor, inf, (0.0,) * len(self._mappings))
        assert found is not None
        return found

    def cost_below(self, axes_per_factor: Sequence[Axes], limit: float, least_moves: Sequence[float]) -> float | None:
        """Returns the total cost if it is less than `limit`, else None. Raises ValueError as `cost` does.

        `least_moves` has a lower bound of the seconds of each `tensor_price`, up to rounding. The other prices are not
        computed once the cost is known to be at least `limit`.
        """
        compute = self.compute.of(axes_per_factor)
        waited, others = self.least_latency(compute), compute + self._neighbour_cost(axes_per_factor)
        price, seconds = Price(), list(least_moves)
        # First those that cost most.
        for index in sorted(range(len(seconds)), key=lambda index: -least_moves[index]):
            if others + sum(seconds) * (1 - ROUNDING) >= limit:
                return None
            of_tensor = self.tensor_price(index, axes_per_factor)
            price += of_tensor
            seconds[index] = of_tensor.seconds
        cost = others + price.moving + max(price.latency, waited)
        return cost if cost < limit else None

    def search(self, index: int, grid: Grid) -> ReshardSearch | None:
        """Returns the search that bounds `tensor_price` by placements on a finest grid; None if it has no bound."""
        return self._reshardings.search(grid, self._problem.tensors[index]) if self.is_bounded(index) else None

    def tensor_price(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        """Returns the price of resharding an operand before the op, or of reducing and resharding a result after it."""
        key = self._key(index, axes_per_factor)
        if key not in self._prices:
            self._prices[key] = self._tensor_price(index, axes_per_factor)
        return self._prices[key]

    def sharding(self, index: int, axes_per_factor: Sequence[Axes]) -> TensorSharding:
        """Returns the sharding in which the op takes an operand or leaves a result."""
        tensor = self._projection.tensors[index]
        dims = tuple(
            [
                self.taken_dim(index, dim, tuple([axes_per_factor[factor] for factor in mapping.factor_indices]))
                for dim, mapping in enumerate(self._mappings[index].dim_mappings)
            ]
        )
        mesh, replicated = self._problem.mesh, tensor.replicated_axes
        if replicated:
            # The op may be sharded along axes that the user keeps free in this tensor alone.
            replicated = axes_difference(replicated, [axis for dim in dims for axis in dim.axes], mesh)
        return TensorSharding(mesh, dims, replicated, tensor.unreduced_axes, tensor.reduction_op)

    def taken_dim(self, index: int, dim: int, axes: AxesPerFactor) -> DimensionSharding:
        """Returns the sharding of a dimension of a tensor with these axes along the factors of the dimension."""
        key = index, dim, axes
        found = self._dims.get(key)
        if found is None:
            found = self._dims[key] = self._taken_dim(*key)
        return found

    def _taken_dim(self, index: int, dim: int, axes: AxesPerFactor) -> DimensionSharding:
        rule, factors = self._problem.rule, self._mappings[index].dim_mappings[dim].factor_indices
        before = [self._projection.tensors[index].factors[factor] for factor in factors]
        is_closed = [old is not None and old.is_closed for old in before]
        if len(factors) == 1:
            return DimensionSharding(axes[0], is_closed[0])
        sizes = [rule.factor_sizes[factor] for factor in factors]
        return join_factors(map(FactorSharding, axes, is_closed), sizes, self._problem.mesh)

    def shards(self, index: int, dim: int, taken: DimensionSharding) -> tuple[bool, int, int]:
        """Returns whether a dimension is divisible, the size of a shard after resharding, and the part held before it.

        The dimension has to be divisible both in the op's sharding and in the given one. The part is the elements that
        a device has in common with its shard before, 0 if neither list of axes continues the other.
        """
        own, size = self._problem.shardings[index], self._problem.tensors[index].shape[dim]
        given = () if own is None else own.dim_shardings[dim].axes
        old_axes, new_axes = (taken.axes, given) if self._is_result(index) else (given, taken.axes)
        blocks, new_blocks = self.compute.size(old_axes), self.compute.size(new_axes)
        if size % blocks or size % new_blocks:
            return False, 0, 0
        continues = old_axes == new_axes or is_strict_prefix(old_axes, new_axes) or is_strict_prefix(new_axes, old_axes)
        return True, size // new_blocks, size // max(blocks, new_blocks) if continues else 0

    def _key(self, index: int, axes_per_factor: Sequence[Axes]) -> tuple[int, AxesPerFactor]:
        return index, tuple([axes_per_factor[factor] for factor in self._factors[index]])

    def given_axes(self, index: int, dim: int, grid: Grid) -> GridAxes:
        """Returns the axes of a dimension of a tensor before an operand is resharded, or after a result is.

        Returns an empty tuple for a tensor that changes its mesh.
        """
        own = self._problem.shardings[index]
        return grid.axes(own.dim_shardings[dim].axes) if own is not None and self.is_bounded(index) else ()

    def is_bounded(self, index: int) -> bool:
        """Returns whether `tensor_price` is bounded: only if the tensor does not change its mesh."""
        return self._own_meshes[index] == self._problem.mesh

    def known_if_least(self) -> float | None:
        """Returns the cost with the known axes if it is proved minimal without a search, else None.

        The proof requires that nothing is resharded or reduced, and that the known axes divide operands evenly.
        """
        known = self.known
        if not all(self._stays(index, known) for index in range(len(self._mappings))):
            return None
        return self.compute.cost_if_least(known, self._neighbour_cost(known), self.move_latency)

    def _tensor_price(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        if self._stays(index, axes_per_factor):
            return Price()
        tensor = self._problem.tensors[index]
        prices = [
            self._reshardings.price(source, target, tensor) / count
            for source, target, count in self._changes(index, axes_per_factor)
        ]
        return sum(prices, Price())

    def _stays(self, index: int, axes_per_factor: Sequence[Axes]) -> bool:
        """Returns whether a tensor is neither resharded nor reduced."""
        if not self.is_bounded(index) or (self._is_result(index) and self._is_reduced(axes_per_factor)):
            return False
        if index in self._with_overflow:
            return False
        # Without overflow axes, the axes of the factors determine a sharding.
        factors = self._projection.tensors[index].factors
        return all(one is None or one.axes == axes for one, axes in zip(factors, axes_per_factor, strict=True))

    def _is_reduced(self, axes_per_factor: Sequence[Axes]) -> bool:
        return any(axes_per_factor[factor] for factor in self._problem.rule.reduction_factors)

    def _changes(self, index: int, axes_per_factor: Sequence[Axes]) -> list[tuple[Placed, Placed, int]]:
        """Returns the successive changes of sharding of a tensor, and for each how many partial sums share it."""
        problem = self._problem
        own = problem.shardings[index], self._own_meshes[index]
        made = self.sharding(index, axes_per_factor), problem.mesh
        if not self._is_result(index):
            return [(own, made, 1)]
        reduced = [axis for factor in problem.rule.reduction_factors for axis in axes_per_factor[factor]]
        if not reduced:
            return [(made, own, 1)]
        unreduced = sort_and_merge(reduced, problem.mesh)
        whole = made[0]
        sharding = TensorSharding(
            whole.mesh_or_ref, whole.dim_shardings, whole.replicated_axes, unreduced, problem.reduction
        )
        partial = sharding, problem.mesh
        if own[1] == problem.mesh:
            return [(partial, own, problem.summands)]
        return [(partial, made, problem.summands), (made, own, 1)]

    def _neighbour_cost(self, axes_per_factor: Sequence[Axes]) -> float:
        num_bytes = 0.0
        for factor in self._problem.rule.permutation_factors:
            if not axes_per_factor[factor]:
                continue
            windows = [window for window in self._problem.windows if window.factor == factor]
            for window in windows:
                blocks = self.compute.size(axes_per_factor[factor])
                num_bytes += window.received(blocks) * self._local_bytes(window.operand, axes_per_factor)
            if not windows:
                num_bytes += max(
                    self._local_bytes(index, axes_per_factor)
                    for index, mapping in enumerate(self._mappings)
                    if mapping.contains_factor(factor)
                )
        return num_bytes / self.rates.network

    def _local_bytes(self, index: int, axes_per_factor: Sequence[Axes]) -> int:
        tensor = self._problem.tensors[index]
        layout = layout_of(self.sharding(index, axes_per_factor), self._problem.mesh, tensor)
        return prod(layout.local_shape) * tensor.element_size
