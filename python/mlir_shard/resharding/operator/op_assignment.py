# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op costs least: a native search bounds costs, and few assignments are priced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, permutations
from math import prod

from mlir_shard._native import AssignmentSearch
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_cost import OpCosts
from mlir_shard.resharding.operator.op_problem import OpProblem
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding.projection import cut_dimension

MOST_PERMUTED = 3
"""The most axes and sub-axes in use for which all may go to any factor, in any order."""
MOST_COMBINED = 4
"""The most axes in use for which all may go to any factor in the order of the grid; of more, only one axis may."""
MOST_USED = 6
"""The most axes in use for which candidates exist: planning reshards between shardings with more axes takes seconds."""


def grid_of(problem: OpProblem) -> Grid:
    """Returns the grid whose axes the shardings around an op are made of. Raises ValueError if no grid has them."""
    lists = (
        factor.all_axes for tensor in problem.projection.tensors for factor in tensor.factors if factor is not None
    )
    return Grid.of(problem.mesh, (axis for axes in lists for axis in axes))


def factor_candidates(problem: OpProblem, grid: Grid) -> tuple[tuple[GridAxes, ...], ...]:
    """Returns for each factor the lists of grid axes that it may get, first those that more of its tensors begin with.

    They are the prefixes of the lists of its tensors, cut anywhere between grid axes, and each prefix followed by axes
    in use elsewhere, within the limits above, if they divide the factor evenly. A factor that needs replication has
    only the empty list. No axes move to a permutation factor, or to one that blocks propagation. Raises ValueError if
    more than `MOST_USED` axes and sub-axes are in use.
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
        begins = frozenset({axes[:length] for axes in had for length in range(len(axes) + 1)} | {()})
        found = set(begins)
        if factor not in rule.permutation_factors and not rule.is_blocked(factor):
            size = rule.factor_sizes[factor]
            found |= {one for one in _continued(begins, used) if _divides(grid.num_devices(one), size)}
        result.append(tuple(_heaviest_first(found, {one: _weight(one, had) for one in begins})))
    return tuple(result)


@lru_cache(maxsize=1024)
def _continued(begins: frozenset[GridAxes], used: GridAxes) -> tuple[GridAxes, ...]:
    """Returns each of `begins` followed by axes of `used` that it does not have, in all ways up to the limits above."""
    ways = permutations if len(used) <= MOST_PERMUTED else combinations
    found = []
    for begin in begins:
        others = [axis for axis in used if axis not in begin]
        for count in range(1, (len(others) if len(used) <= MOST_COMBINED else 1) + 1):
            found += [begin + tuple(more) for more in ways(others, count)]
    return tuple(found)


def _heaviest_first(found: Iterable[GridAxes], weights: Mapping[GridAxes, int]) -> list[GridAxes]:
    """Returns lists of axes sorted by descending weight, 0 if it is missing, then by length and axes."""
    return sorted(found, key=lambda axes: (-weights.get(axes, 0), len(axes), axes))


def _weight(axes: GridAxes, had: list[GridAxes]) -> int:
    return sum(len(axes) for other in had if other[: len(axes)] == axes)


def _divides(blocks: int, size: int) -> bool:
    return size > 0 and size % blocks == 0


MOST_NODES = 4000
"""The most nodes that a search reaches before it returns the assignments so far."""
MOST_PRICED = 40
"""The most assignments that are priced."""
MOST_COUNTED = 1 << 62
"""The most devices along all axes in use."""
# Costs with a smaller relative difference are equal, as they are sums of floats.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class OpAssignment:
    """The axes of each factor and their cost; `is_exact` if it is proved that no other candidates cost less.

    `stays` is true if that is proved without a search, as nothing is resharded or reduced.
    """

    axes_per_factor: AxesPerFactor
    cost: float
    is_exact: bool
    stays: bool = False


def cheapest_assignment(problem: OpProblem, costs: OpCosts, most_nodes: int = MOST_NODES) -> OpAssignment:
    """Returns the cheapest assignment of candidates to factors, or the known one if no other is cheaper.

    Raises ValueError if the known one is not possible, or if the axes in use share no grid or are too many.
    """
    least = costs.known_if_least()
    if least is not None:
        return OpAssignment(costs.known, least, True, stays=True)
    return CandidateSearch(problem, costs, grid_of(problem), most_nodes).best()


class CandidateSearch:
    """A search for the cheapest assignment among the candidates of the factors of one op."""

    def __init__(self, problem: OpProblem, costs: OpCosts, grid: Grid, most_nodes: int) -> None:
        self._problem, self._costs, self._grid = problem, costs, grid
        self._most_nodes = most_nodes
        self._candidates = factor_candidates(problem, grid)
        every = {one for of in self._candidates for one in of}
        self._merged = [list(map(grid.refs, of)) for of in self._candidates]
        self._num_used = grid.num_devices(tuple({axis for one in every for axis in one}))
        if self._num_used > MOST_COUNTED:
            raise ValueError(f"{self._num_used} devices are along the axes in use, more than {MOST_COUNTED}")

    def best(self) -> OpAssignment:
        """Returns the cheapest of the known assignment and those of the native search; of equal ones, the first.

        Assignments are priced in ascending order of their bounds.
        """
        best, place, least = self._costs.known, -1, self._costs.cost(self._costs.known)
        search = self.native()
        # One more than are priced, to detect whether there are more.
        most = MOST_PRICED + 1
        found, is_exact = search.below(least * (1 - TOLERANCE), self._most_nodes, most)
        priced = sorted((bound, number) for number, (_, bound, _) in enumerate(found[:MOST_PRICED]))
        for bound, number in priced:
            if not _is_cheaper(bound, least) and (number > place or bound > least * (1 + TOLERANCE)):
                continue
            numbers = found[number][2]
            axes_per_factor = self.axes(numbers)
            cost = self._costs.cost_below(axes_per_factor, least * (1 + TOLERANCE), search.least_moves(numbers))
            if cost is not None and (_is_cheaper(cost, least) or number < place):
                best, place, least = axes_per_factor, number, cost
        is_exact = is_exact and not any(_is_cheaper(bound, least) for bound, _, _ in found[MOST_PRICED:])
        return OpAssignment(best, least, is_exact)

    def axes(self, numbers: Sequence[int]) -> AxesPerFactor:
        """Returns the axes of each factor by the number of its candidate."""
        return tuple([of[number] for of, number in zip(self._merged, numbers, strict=True)])

    def native(self) -> AssignmentSearch:
        """Returns the native search, which bounds the costs of assignments."""
        problem, costs = self._problem, self._costs
        rule, rates = problem.rule, costs.rates
        finest = self._grid.finest()
        numbers: dict[int, int] = {}

        @cache
        def numbered(axes: GridAxes) -> tuple[list[int], int]:
            return [numbers.setdefault(axis, len(numbers)) for axis in axes], self._grid.num_devices(axes)

        tensors = [
            (
                tensor.element_size,
                [
                    (size, dim.factor_indices, numbered(costs.given_axes(index, number, self._grid)))
                    for number, (size, dim) in enumerate(zip(tensor.shape, mapping.dim_mappings, strict=True))
                ],
                index >= len(rule.operand_mappings),
                costs.is_bounded(index),
                costs.search(index, finest),
            )
            for index, (tensor, mapping) in enumerate(zip(problem.tensors, rule.tensor_mappings, strict=True))
        ]
        candidates = [list(map(numbered, of)) for of in self._candidates]
        return AssignmentSearch(
            factor_sizes=rule.factor_sizes,
            reduction_factors=rule.reduction_factors,
            tensors=tensors,
            order=self._order(),
            candidates=candidates,
            devices=self._num_used,
            computes=bool(rule.operand_mappings),
            indexes=problem.indexes,
            rates=(rates.operations, rates.memory, rates.network),
            move_latency=costs.move_latency,
            known=(costs.known_compute, costs.known_price.latency),
            summands=problem.summands,
            search_axes=[finest.axes((self._grid.atoms[axis],)) for axis in numbers],
            ask_dim=self._ask_dim,
        )

    def _order(self) -> list[int]:
        """Returns the factors, those of the largest tensors first."""
        rule = self._problem.rule
        sizes = [0] * rule.num_factors
        for tensor, mapping in zip(self._problem.tensors, rule.tensor_mappings, strict=True):
            num_bytes = tensor.element_size * prod(tensor.shape)
            for dim in mapping.dim_mappings:
                for factor in dim.factor_indices:
                    sizes[factor] += num_bytes
        return sorted(range(rule.num_factors), key=lambda factor: (-sizes[factor], factor))

    def _ask_dim(self, index: int, dim: int, numbers: list[int]) -> tuple[bool, bool, int, int]:
        """Returns whether a dimension can have the candidates of these numbers along its factors, and `OpCosts.shards`.

        A factor behind one that is not fully sharded cannot be sharded: its shards would be strided.
        """
        rule = self._problem.rule
        mapping = rule.tensor_mappings[index].dim_mappings[dim]
        factors = mapping.factor_indices
        axes = tuple([self._merged[factor][number] for factor, number in zip(factors, numbers, strict=True)])
        taken = self._costs.taken_dim(index, dim, axes)
        parts = cut_dimension(taken, mapping, rule.factor_sizes, self._problem.mesh)
        is_possible = all(
            part.axes == wanted and not part.overflow_axes for (_, part), wanted in zip(parts, axes, strict=True)
        )
        return is_possible, *self._costs.shards(index, dim, taken)


def _is_cheaper(cost: float, than: float) -> bool:
    return cost < than * (1 - TOLERANCE)
