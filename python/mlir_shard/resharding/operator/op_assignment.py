# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op is computed at the least cost, by branch and bound (Land, Doig 1960)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_cost import OpCosts, OpProblem, Price
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.axes import add_axes_or_merge
from mlir_shard.sharding.projection import TensorFactorShardings

MOST_PERMUTED = 3
"""Up to so many axes and sub-axes in use, all may go to any factor in any order."""
MOST_COMBINED = 4
"""Up to so many, in the order of the grid; of more, one."""
MOST_USED = 6
"""With more, there are no candidates: to plan reshards between such shardings takes seconds."""


def grid_of(problem: OpProblem) -> Grid:
    """The grid whose axes the shardings around an op are made of; ValueError where there is none."""
    lists = (
        factor.all_axes for tensor in problem.projection.tensors for factor in tensor.factors if factor is not None
    )
    return Grid.of(problem.mesh, (axis for axes in lists for axis in axes))


def factor_candidates(problem: OpProblem, grid: Grid) -> tuple[tuple[GridAxes, ...], ...]:
    """For each factor the lists of grid axes it may get, those that more of its tensors begin with first.

    Those are the begins of the lists that its tensors have, cut anywhere between grid axes, and each of these followed
    by axes that are in use elsewhere, as far as above, if the factor divides evenly so. A factor that needs
    replication has none but the empty list; none moves to a factor that needs neighbours, or that nothing is to
    propagate along. ValueError where more than `MOST_USED` axes and sub-axes are in use.
    """
    rule, projection = problem.rule, problem.projection
    lists = [
        [grid.axes(sharding.axes) for tensor in projection.tensors if (sharding := tensor.factors[factor]) is not None]
        for factor in range(rule.num_factors)
    ]
    used = tuple(sorted({axis for of_factor in lists for axes in of_factor for axis in axes}))
    if len(used) > MOST_USED:
        raise ValueError(f"{len(used)} axes and sub-axes are in use, more than {MOST_USED}")
    result: list[tuple[GridAxes, ...]] = []
    for factor, had in enumerate(lists):
        if factor in rule.need_replication_factors:
            result.append(((),))
            continue
        begins = {axes[:length] for axes in had for length in range(len(axes) + 1)} | {()}
        found = set(begins)
        if factor not in rule.permutation_factors and not rule.is_blocked(factor):
            size = rule.factor_sizes[factor]
            found |= {one for one in _continued(begins, used) if _divides(grid.num_devices(one), size)}
        result.append(tuple(sorted(found, key=lambda axes: (-_weight(axes, had), len(axes), axes))))
    return tuple(result)


def _continued(begins: Iterable[GridAxes], used: GridAxes) -> Iterator[GridAxes]:
    ways = permutations if len(used) <= MOST_PERMUTED else combinations
    for begin in begins:
        others = [axis for axis in used if axis not in begin]
        for count in range(1, (len(others) if len(used) <= MOST_COMBINED else 1) + 1):
            for more in ways(others, count):
                yield begin + tuple(more)


def _weight(axes: GridAxes, had: list[GridAxes]) -> int:
    return sum(len(axes) for other in had if other[: len(axes)] == axes)


def _divides(blocks: int, size: int) -> bool:
    return size > 0 and size % blocks == 0


MOST_NODES = 4000
"""The nodes that a search reaches before it settles for what it has."""
MOST_PRICED = 40
"""The assignments that it prices."""
# A difference of a smaller share is none: costs are sums of floats.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class OpAssignment:
    """The axes of each factor and what they cost; `is_exact` where no other candidates cost less."""

    axes_per_factor: AxesPerFactor
    cost: float
    is_exact: bool


def cheapest_assignment(problem: OpProblem, costs: OpCosts, most_nodes: int = MOST_NODES) -> OpAssignment:
    """The cheapest of all assignments of candidates to factors and the known one, which it is where none is cheaper.

    ValueError where the known one cannot be, or the axes in use share no grid or are too many.
    """
    return _Search(problem, costs, grid_of(problem), most_nodes).best()


class _Search:
    def __init__(self, problem: OpProblem, costs: OpCosts, grid: Grid, most_nodes: int) -> None:
        self._problem, self._costs = problem, costs
        self._candidates = factor_candidates(problem, grid)
        self._nodes_left = most_nodes
        rule = problem.rule
        sizes = [0] * rule.num_factors
        for tensor, mapping in zip(problem.tensors, rule.tensor_mappings, strict=True):
            num_bytes = tensor.element_size
            for size in tensor.shape:
                num_bytes *= size
            for dim in mapping.dim_mappings:
                for factor in dim.factor_indices:
                    sizes[factor] += num_bytes
        self._order = sorted(range(rule.num_factors), key=lambda factor: (-sizes[factor], factor))
        self._completed = self._tensors_by_depth()
        self._axes: list[GridAxes] = [()] * rule.num_factors
        all_axes = {(), *(one for of in self._candidates for one in of)}
        self._counts = {one: grid.num_devices(one) for one in all_axes}
        self._merged = {
            one: add_axes_or_merge((), (grid.atoms[axis] for axis in one), problem.mesh) for one in all_axes
        }
        self._used: frozenset[int] = frozenset()
        self._found: list[tuple[float, AxesPerFactor]] = []
        self._num_used = grid.num_devices(tuple({axis for of in self._candidates for one in of for axis in one}))

    def best(self) -> OpAssignment:
        best = self._costs.known
        least = self._costs.cost(best)
        self._visit(0, Price(), least)
        is_exact = self._nodes_left > 0
        for count, (bound, axes_per_factor) in enumerate(sorted(self._found, key=lambda one: one[0])):
            if not _is_cheaper(bound, least):
                break
            if count == MOST_PRICED:
                is_exact = False
                break
            cost = self._costs.cost_below(axes_per_factor, least)
            if cost is not None and _is_cheaper(cost, least):
                best, least = axes_per_factor, cost
        return OpAssignment(best, least, is_exact)

    def _tensors_by_depth(self) -> list[list[int]]:
        """The tensors whose last factor gets its axes at each depth; those without factors at the last."""
        rule = self._problem.rule
        depths = {factor: depth for depth, factor in enumerate(self._order)}
        completed: list[list[int]] = [[] for _ in range(rule.num_factors + 1)]
        for index, mapping in enumerate(rule.tensor_mappings):
            factors = [factor for dim in mapping.dim_mappings for factor in dim.factor_indices]
            if index >= len(rule.operand_mappings):
                factors += rule.reduction_factors
            completed[max((depths[factor] + 1 for factor in factors), default=rule.num_factors)].append(index)
        return completed

    def _visit(self, depth: int, resharded: Price, known: float) -> None:
        """Notes what begins as the factors so far do and may be cheaper than what is known; `resharded` is what the
        tensors before this depth cost at least."""
        self._nodes_left -= 1
        if self._nodes_left <= 0:
            return
        if self._completed[depth]:
            axes_per_factor = self._axes_per_factor()
            for index in self._completed[depth]:
                resharded += self._costs.tensor_bound(index, axes_per_factor)
        compute = self._least_compute(depth)
        bound = resharded.moving + compute + max(resharded.latency, self._costs.least_latency(compute))
        if not _is_cheaper(bound, known):
            return
        if depth == len(self._order):
            axes_per_factor = self._axes_per_factor()
            if all(self._is_sayable(index, axes_per_factor) for index in range(len(self._problem.tensors))):
                self._found.append((bound, axes_per_factor))
            return
        factor, used = self._order[depth], self._used
        for axes in self._candidates[factor]:
            if used.isdisjoint(axes):
                self._axes[factor], self._used = axes, used.union(axes)
                self._visit(depth + 1, resharded, known)
        self._axes[factor], self._used = (), used

    def _least_compute(self, depth: int) -> float:
        counts = [self._counts[self._axes[factor]] for factor in self._order[:depth]]
        blocks = [self._num_used // prod(counts)] * len(self._axes)
        for factor, count in zip(self._order, counts, strict=False):
            blocks[factor] = count
        return self._costs.compute_cost(blocks)

    def _axes_per_factor(self) -> AxesPerFactor:
        return tuple([self._merged[axes] for axes in self._axes])

    def _is_sayable(self, index: int, axes_per_factor: AxesPerFactor) -> bool:
        """Whether the dimensions of a tensor can be sharded so: a factor behind one that is not fully sharded cannot
        be, its blocks would be strided."""
        rule, mesh = self._problem.rule, self._problem.mesh
        mapping = rule.tensor_mappings[index]
        if all(len(dim.factor_indices) < 2 for dim in mapping.dim_mappings):
            return True
        said = TensorFactorShardings.project(
            self._costs.sharding(index, axes_per_factor), mapping, rule.factor_sizes, mesh
        )
        return all(
            sharding is None or (sharding.axes == axes and not sharding.overflow_axes)
            for sharding, axes in zip(said.factors, axes_per_factor, strict=True)
        )


def _is_cheaper(cost: float, than: float) -> bool:
    return cost < than * (1 - TOLERANCE)
