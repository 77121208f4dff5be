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
from mlir_shard.sharding import DimensionSharding, TensorSharding
from mlir_shard.sharding.axes import Axes, is_strict_prefix, sort_and_merge


class OpCosts:
    """The costs of one op for different axes of its factors; `known` is one choice of axes."""

    def __init__(self, problem: OpProblem, known: AxesPerFactor, reshardings: Reshardings, rates: DeviceRates) -> None:
        self._problem = problem
        self._reshardings = reshardings
        self.compute = ComputeCosts(problem, rates)
        self.rates = rates
        self._form = problem.form
        self._mappings = problem.form.rule.tensor_mappings
        self._factors = problem.form.factors_of
        self._prices: dict[tuple[int, AxesPerFactor], Price] = {}
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

    def shards(self, index: int, dim: int, taken: DimensionSharding) -> tuple[bool, int, int]:
        """Returns whether a dimension is divisible, the size of a shard after resharding, and the part held before it.

        The dimension has to be divisible both in the op's sharding and in the given one. The part is the elements that
        a device has in common with its shard before, 0 if neither list of axes continues the other.
        """
        own, size = self._form.shardings[index], self._problem.tensors[index].shape[dim]
        given = () if own is None else own.dim_shardings[dim].axes
        old_axes, new_axes = (taken.axes, given) if self._form.is_result(index) else (given, taken.axes)
        blocks, new_blocks = self.compute.size(old_axes), self.compute.size(new_axes)
        if size % blocks or size % new_blocks:
            return False, 0, 0
        continues = old_axes == new_axes or is_strict_prefix(old_axes, new_axes) or is_strict_prefix(new_axes, old_axes)
        return True, size // new_blocks, size // max(blocks, new_blocks) if continues else 0

    def _key(self, index: int, axes_per_factor: Sequence[Axes]) -> tuple[int, AxesPerFactor]:
        return index, tuple([axes_per_factor[factor] for factor in self._factors[index]])

    def is_bounded(self, index: int) -> bool:
        """Returns whether `tensor_price` is bounded: only if the tensor does not change its mesh, and is not shared."""
        return self._form.is_on_mesh(index) and self._iterations(index) == 1

    def _iterations(self, index: int) -> int:
        """Returns the number of iterations of a loop that share an operand."""
        return self._problem.iterations[index] if index < len(self._problem.iterations) else 1

    def known_if_least(self) -> float | None:
        """Returns the cost with the known axes if it is proved minimal without a search, else None.

        The proof requires that nothing is resharded or reduced, and that the known axes divide operands evenly.
        """
        known = self.known
        if not all(self._form.stays(index, known) for index in range(len(self._mappings))):
            return None
        return self.compute.cost_if_least(known, self._neighbour_cost(known), self.move_latency)

    def _tensor_price(self, index: int, axes_per_factor: Sequence[Axes]) -> Price:
        if self._form.stays(index, axes_per_factor):
            return Price()
        tensor = self._problem.tensors[index]
        total = None
        for source, target, count in self._changes(index, axes_per_factor):
            price = self._reshardings.price(source, target, tensor)
            price = price if count == 1 else price / count
            total = price if total is None else total + price
        return Price() if total is None else total

    def _changes(self, index: int, axes_per_factor: Sequence[Axes]) -> list[tuple[Placed, Placed, int]]:
        """Returns the successive changes of sharding of a tensor, and for each how many partial sums or iterations of a
        loop share it."""
        problem, form = self._problem, self._form
        own = form.shardings[index], form.own_meshes[index]
        made = form.taken(index, axes_per_factor), form.mesh
        if not self._form.is_result(index):
            return [(own, made, self._iterations(index))]
        reduced = [axis for factor in form.rule.reduction_factors for axis in axes_per_factor[factor]]
        if not reduced:
            return [(made, own, 1)]
        unreduced = sort_and_merge(reduced, form.mesh)
        whole = made[0]
        sharding = TensorSharding(
            whole.mesh_or_ref, whole.dim_shardings, whole.replicated_axes, unreduced, problem.reduction
        )
        partial = sharding, form.mesh
        if own[1] == form.mesh:
            return [(partial, own, problem.summands)]
        return [(partial, made, problem.summands), (made, own, 1)]

    def _neighbour_cost(self, axes_per_factor: Sequence[Axes]) -> float:
        num_bytes = 0.0
        for factor in self._form.rule.permutation_factors:
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
        layout = layout_of(self._form.taken(index, axes_per_factor), self._form.mesh, tensor)
        return prod(layout.local_shape) * tensor.element_size
