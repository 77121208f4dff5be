# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes along which an op costs least: a native search bounds costs, and few assignments are priced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir_shard._native import AssignmentSearch
from mlir_shard.resharding.operator.common_axes import AxesPerFactor
from mlir_shard.resharding.operator.op_cost import OpCosts
from mlir_shard.resharding.operator.op_problem import OpProblem
from mlir_shard.sharding.projection import cut_dimension

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
    return CandidateSearch(problem, costs, most_nodes).best()


class CandidateSearch:
    """A search for the cheapest assignment among the candidates of the factors of one op."""

    def __init__(self, problem: OpProblem, costs: OpCosts, most_nodes: int = MOST_NODES) -> None:
        self._problem, self._costs, self._form = problem, costs, problem.form
        self._most_nodes = most_nodes
        self._candidates = problem.form.candidates(problem.factor_sizes)
        if self._candidates.devices > MOST_COUNTED:
            devices = self._candidates.devices
            raise ValueError(f"{devices} devices are along the axes in use, more than {MOST_COUNTED}")

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
        return tuple([of[number] for of, number in zip(self._candidates.axes, numbers, strict=True)])

    def native(self) -> AssignmentSearch:
        """Returns the native search, which bounds the costs of assignments."""
        problem, costs, form = self._problem, self._costs, self._form
        rule, rates, finest = form.rule, costs.rates, form.grid.finest()
        tensors = [
            (
                tensor.element_size,
                [
                    (size, dim.factor_indices, given)
                    for size, dim, given in zip(tensor.shape, mapping.dim_mappings, given_axes, strict=True)
                ],
                form.is_result(index),
                costs.is_bounded(index),
                costs.search(index, finest),
            )
            for index, (tensor, mapping, given_axes) in enumerate(
                zip(problem.tensors, rule.tensor_mappings, form.given_axes, strict=True)
            )
        ]
        return AssignmentSearch(
            factor_sizes=problem.factor_sizes,
            reduction_factors=rule.reduction_factors,
            tensors=tensors,
            order=self._order(),
            candidates=self._candidates.numbered,
            devices=self._candidates.devices,
            computes=bool(rule.operand_mappings),
            indexes=problem.indexes,
            rates=(rates.operations, rates.memory, rates.network),
            move_latency=costs.move_latency,
            known=(costs.known_compute, costs.known_price.latency),
            summands=problem.summands,
            search_axes=form.search_axes,
            ask_dim=self._ask_dim,
        )

    def _order(self) -> list[int]:
        """Returns the factors, those of the largest tensors first."""
        rule = self._form.rule
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
        rule = self._form.rule
        mapping = rule.tensor_mappings[index].dim_mappings[dim]
        factors = mapping.factor_indices
        axes = tuple([self._candidates.axes[factor][number] for factor, number in zip(factors, numbers, strict=True)])
        taken = self._form.taken_dim(index, dim, axes)
        parts = cut_dimension(taken, mapping, rule.factor_sizes, self._form.mesh)
        is_possible = all(
            part.axes == wanted and not part.overflow_axes for (_, part), wanted in zip(parts, axes, strict=True)
        )
        return is_possible, *self._costs.shards(index, dim, taken)


def _is_cheaper(cost: float, than: float) -> bool:
    return cost < than * (1 - TOLERANCE)
