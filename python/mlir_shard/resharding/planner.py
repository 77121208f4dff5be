# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planner: the cheapest plan that brings a tensor from one layout to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from math import inf, prod
from typing import NamedTuple

from mlir_shard._native import ReshardSearch
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_problem import GridProblem
from mlir_shard.resharding.grid_search import (
    DEAREST,
    ROUNDING,
    Cost,
    GridSearch,
)
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import (
    Plan,
    Rank,
    Steps,
    Totals,
    least_cost,
    moves_totals,
    plan_steps,
    steps_totals,
)
from mlir_shard.resharding.seed_plans import GridPlan, layout_axes, seed_plans
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.resharding.without_common_grid import steps_without_grid

FEW_STATES = 20
"""The most states of a search that is for prices only, and tries only the two usual ways to reduce first."""
MOST_TO_EXCHANGE = 64
"""The most devices for which a direct exchange that reduces is tried; its cost needs its messages to be constructed."""
MOST_SPLIT_AXES = 5
"""The most axes into which all mesh axes are split, by their prime factors; with more, they are not split."""


class _Candidate(NamedTuple):
    """A plan in parts, each with the layouts before and after it, and its rank among others."""

    rank: Rank
    parts: tuple[tuple[TensorLayout, TensorLayout, GridPlan], ...]
    totals: Totals


def _best(candidates: Iterable[_Candidate | None]) -> _Candidate | None:
    """Returns the first of the best candidates, None if all are None."""
    found = [one for one in candidates if one is not None]
    if len(found) < 2:
        return found[0] if found else None
    return min(found, key=lambda one: (_rounded(one.rank[0]), *one.rank[1:]))


def _at_most(best: _Candidate | None) -> float:
    """Returns the most seconds of plans that may be better, but for rounding."""
    return inf if best is None else best.totals.seconds * (1 + 10 * ROUNDING)


def _rounded(cost: float) -> float:
    """Returns the cost, rounded so that the same seconds added up in different orders are equal."""
    return float(f"{cost:.9e}")


class SameMeshPlanner:
    """A planner with one cost model, for layouts that share a grid."""

    def __init__(
        self, model: CostModel, most_states: int, *, most_messages: int, exchange_reduces: bool, splits_axes: bool
    ) -> None:
        self._model, self._most_messages, self._splits_axes = model, most_messages, splits_axes
        self._exchange_reduces = most_messages > 0 and exchange_reduces
        self._is_for_prices = most_states <= FEW_STATES
        self._search = GridSearch(model, most_states, most_messages=most_messages)

    def steps(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Steps:
        """Returns the steps of the plan. Raises ValueError if the two share no grid, or no plan fits the memory."""
        plan, least = self._plan(source, target, element_size)
        steps = [
            step
            for before, after, part in plan.parts
            for step in plan_steps(before, after, part.grid, part.start, part.moves, element_size, self._model)
        ]
        return Steps(tuple(steps), plan.rank[0], least)

    def totals(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Totals:
        """Returns the totals of the steps, without constructing them. Raises ValueError as `steps` does."""
        return self._plan(source, target, element_size)[0].totals

    def native_search(self, tensor: GridTensor) -> ReshardSearch | None:
        """Returns the native search for a tensor on a finest grid; None if it does not bound plans."""
        is_bound = self._model.objective is Objective.TIME and not self._exchange_reduces
        return self._search.native(tensor, ()) if is_bound else None

    def _plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> tuple[_Candidate, float]:
        """Returns the best plan, and a lower bound of the cost of any plan."""
        found, least = self._best_plan(GridProblem.of(source, target, element_size), DEAREST)
        if found is None:
            limit = self._model.memory_limit
            raise ValueError(
                f"no plan found from {source.sharding} to {target.sharding} within {limit} bytes per device"
            )
        cost = found.rank[0]
        return found, cost if least >= cost * (1 - ROUNDING) else least

    def _best_plan(self, problem: GridProblem, at_most: Cost) -> tuple[_Candidate | None, float]:
        """Returns the best plan found, if any, and a lower bound of the cost of any plan.

        Plans that cost less than `at_most` are searched for; the result may cost more.
        """
        if problem.start == problem.end:
            # This is often the case after a first reduction.
            return self._cheapest([GridPlan(problem.grid, problem.start, ())], problem), self._least(problem)
        finest = problem.on_finer_grid() if self._splits_axes else problem
        searched = finest if len(finest.grid.atoms) <= MOST_SPLIT_AXES else problem
        # A lower bound on one grid may not hold on a finer one.
        least, first = self._least(finest), None
        # The short search for a price on a coarser grid hardly ever proves a path with reductions.
        is_likely_proved = searched is finest or not problem.from_state.unreduced
        if self._is_for_prices and is_likely_proved and searched.can_be_searched:
            # A price needs none of the seed plans if the path that is found is proved to be the cheapest.
            first, of_search = self._searched(searched, at_most)
            least = of_search if searched is finest else least
            if first and self._is_least(first, at_most, least):
                return first, least
        # A search has a direct exchange unless it reduces.
        has_exchange = first is not None and not problem.from_state.unreduced
        exchange = None if has_exchange else self._cheapest(self._exchanges(problem), problem)
        if problem.from_state.unreduced:
            found = self._reduced_first(problem, min(at_most, self._cost(_best((first, exchange)))))
        else:
            splits_axes, most_messages = self._splits_axes, self._most_messages
            seeds = seed_plans(problem.source, problem.target, splits_axes=splits_axes, most_messages=most_messages)
            found = self._cheapest(seeds, problem, first)
        # Of plans that cost the same the first is taken: collectives rather than a direct exchange.
        found = _best((first, found, exchange))
        # After a search, another one is of use only if a plan that costs less is found meanwhile.
        is_other = found is None or found is not first
        if is_other and searched.can_be_searched and not self._is_least(found, at_most, least):
            more, of_search = self._searched(searched, min(at_most, self._cost(found)))
            found = _best((found, more))
            least = of_search if searched is finest else least
        return found, least

    def _cost(self, found: _Candidate | None) -> Cost:
        return DEAREST if found is None else found.rank[:2]

    def _is_least(self, found: _Candidate | None, at_most: Cost, least: float) -> bool:
        """Returns whether no plan costs less than the one found, or than `at_most`."""
        return least >= min(at_most, self._cost(found))[0] * (1 - ROUNDING)

    def _exchanges(self, problem: GridProblem) -> Iterator[GridPlan]:
        """Yields the direct exchange, if it is possible."""
        traffic = traffic_on(problem.tensor.grid.sizes, problem.tensor.shape)
        dims = problem.start.dims, problem.end.dims
        if problem.from_state.unreduced:
            if self._exchange_reduces and traffic.num_devices <= MOST_TO_EXCHANGE:
                yield problem.exchange()
        elif dims[0] != dims[1] and traffic.can_exchange(*dims, self._most_messages):
            yield problem.exchange()

    def _reduced_first(self, problem: GridProblem, at_most: Cost) -> _Candidate | None:
        """Returns the best plan that first reduces all partial values; None if none is found below `at_most`."""
        is_memory = self._model.objective is Objective.MEMORY
        firsts = []
        for reduced, plan in islice(problem.reductions(), 2 if self._is_for_prices else None):
            first = self._cheapest([plan], replace(problem, target=reduced))
            if first is not None:
                rest = GridProblem.of(reduced, problem.target, problem.element_size)
                bound = self._least(rest.on_finer_grid() if self._splits_axes else rest)
                firsts.append((max(first.rank[0], bound) if is_memory else first.rank[0] + bound, first, rest))
        result = []
        for bound, first, rest in sorted(firsts, key=lambda one: _rounded(one[0])):
            if bound >= at_most[0] * (1 - ROUNDING):
                break
            left = at_most if is_memory else (at_most[0] - first.rank[0], inf)
            then, _ = self._best_plan(rest, left)
            if then is not None:
                totals = first.totals.then(then.totals)
                both = _Candidate(totals.rank(self._model.objective), first.parts + then.parts, totals)
                result.append(both)
                at_most = min(at_most, both.rank[:2])
        return _best(result)

    def _searched(self, problem: GridProblem, at_most: Cost) -> tuple[_Candidate | None, float]:
        """Returns the cheaper plan that a search finds, if any, and a lower bound of the cost of plans on the grid."""
        if self._model.objective is Objective.MEMORY:
            at_most = DEAREST
        found = self._search.find(problem.tensor, problem.from_state, problem.to_state, problem.end.unreduced, at_most)
        return self._cheapest([problem.plan(found.steps)] if found.steps is not None else [], problem), found.least

    def _least(self, problem: GridProblem) -> float:
        """Returns a lower bound of the cost of any plan, without a search."""
        layouts = problem.source, problem.target, problem.element_size
        if self._model.objective is Objective.MEMORY:
            return least_cost(*layouts, self._model)
        states = problem.from_state, problem.to_state, problem.end.unreduced
        least = self._search.least(problem.tensor, *states)
        # The search has a direct exchange only if nothing has to be reduced.
        is_large = problem.source.mesh.total_size > MOST_TO_EXCHANGE
        if problem.from_state.unreduced and self._exchange_reduces and is_large:
            least = min(least, least_cost(*layouts, self._model))
        return least

    def _cheapest(
        self, plans: Iterable[GridPlan], problem: GridProblem, best: _Candidate | None = None
    ) -> _Candidate | None:
        """Returns the first of the best plans within the memory limit, `best` if none is better."""
        limit, objective = self._model.memory_limit, self._model.objective
        is_time = objective is Objective.TIME
        most_seconds = _at_most(best) if is_time else inf
        for plan in plans:
            moves = plan.grid, plan.start, plan.moves
            totals = moves_totals(problem.source, *moves, problem.element_size, self._model, most_seconds)
            if totals is None or (limit is not None and plan.moves and totals.peak > limit):
                continue
            parts = ((problem.source, problem.target, plan),)
            best = _best((best, _Candidate(totals.rank(objective), parts, totals)))
            if is_time:
                most_seconds = _at_most(best)
        return best


MOST_BYTES = 1 << 90
"""The most bytes of a tensor for which reshards are planned."""
MOST_PLANNED_DEVICES = 1 << 31
"""The most devices of a mesh for which reshards are planned."""
MOST_MESSAGES = 1 << 16
"""The most devices times rounds of a direct exchange that is planned: a program has tables of as many entries."""
MOST_STATES = 1000
"""The most states that a search reaches before it returns the best plan so far."""
MOST_CACHED = 4096
"""The plans, and the totals of plans, that a planner caches: the least recently used are evicted."""


class Planner:
    """A planner with one cost model and a cache of plans.

    A plan depends on the arguments only, not on the plans before.

    A layout needs a size for each dimension: give it the size to assume for a dynamic one. If the search reaches
    `most_states` states without an end, the plan may have a `gap`.

    Args:
        uses_direct_exchange: plan direct exchanges too, if the messages of all devices are at most `most_messages`.
        exchange_reduces: let a direct exchange reduce partial values, which no program does.
        splits_axes: plan moves along sub-axes that neither of the two layouts uses.
    """

    def __init__(
        self,
        cost_model: CostModel | None = None,
        *,
        uses_direct_exchange: bool = True,
        exchange_reduces: bool = False,
        most_messages: int = MOST_MESSAGES,
        splits_axes: bool = True,
        most_states: int = MOST_STATES,
    ) -> None:
        self.cost_model = CostModel() if cost_model is None else cost_model
        self._cached_plan = lru_cache(maxsize=MOST_CACHED)(self._plan)
        self._cached_totals = lru_cache(maxsize=MOST_CACHED)(self._totals)
        self._most_messages = most_messages if uses_direct_exchange else 0
        self._same_mesh = SameMeshPlanner(
            self.cost_model,
            most_states,
            most_messages=self._most_messages,
            exchange_reduces=exchange_reduces,
            splits_axes=splits_axes,
        )

    def plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        """Returns the plan from `source` to `target` of a tensor with elements of `element_size` bytes.

        Raises ValueError if no plan exists, see `reduced_axes`, if none is within the memory limit of the cost model,
        if the element size is not positive, or if the tensor or a mesh is too large.
        """
        return self._cached_plan(source, target, element_size)

    def totals(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Totals:
        """Returns the totals of the plan's steps, in less time than `plan`. Raises ValueError as `plan` does."""
        return self._cached_totals(source, target, element_size)

    def native_search(self, grid: Grid, shape: tuple[int, ...], element_size: int) -> ReshardSearch | None:
        """Returns the native search, whose `least` bounds plans between placements on `grid`, up to rounding.

        Args:
            grid: the finest grid of a mesh.

        Returns:
            None if plans are not bounded: the objective is not time, direct exchanges reduce, or the tensor or the
            mesh is too large to plan for.
        """
        if _too_large(grid.mesh.total_size, shape, element_size):
            return None
        return self._same_mesh.native_search(GridTensor(grid, shape, element_size))

    def _plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        _check(source, target, element_size)
        if self._share_grid(source, target):
            found = self._same_mesh.steps(source, target, element_size)
        else:
            found = steps_without_grid(
                source, target, element_size, self.cost_model, self._same_mesh.steps, most_messages=self._most_messages
            )
        return Plan(source, target, element_size, found.steps, found.cost, found.least)

    def _totals(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Totals:
        _check(source, target, element_size)
        if self._share_grid(source, target):
            return self._same_mesh.totals(source, target, element_size)
        return steps_totals(self.plan(source, target, element_size).steps, source, element_size)

    def _share_grid(self, source: TensorLayout, target: TensorLayout) -> bool:
        if source.mesh != target.mesh:
            return False
        try:
            Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
        except ValueError:
            return False
        return True


@lru_cache(maxsize=16)
def shared_planner(cost_model: CostModel, *, uses_direct_exchange: bool = True, splits_axes: bool = True) -> Planner:
    """Returns the planner with these options, with a cache that all programs of the process share."""
    return Planner(cost_model, uses_direct_exchange=uses_direct_exchange, splits_axes=splits_axes)


def _check(source: TensorLayout, target: TensorLayout, element_size: int) -> None:
    if element_size <= 0:
        raise ValueError(f"an element must have at least 1 byte, got {element_size}")
    reduced_axes(source, target)
    most = max(source.mesh.total_size, target.mesh.total_size)
    if violation := _too_large(most, source.shape, element_size):
        raise ValueError(violation)


def _too_large(devices: int, shape: tuple[int, ...], element_size: int) -> str | None:
    """Returns why nothing is planned for a tensor of this shape on `devices` devices; None if it is not too large."""
    if devices > MOST_PLANNED_DEVICES:
        return f"a mesh of {devices} devices is too large to plan for: at most {MOST_PLANNED_DEVICES}"
    if element_size * prod(shape) > MOST_BYTES or max(shape, default=0) >= 1 << 63:
        return f"a tensor of shape {list(shape)} is too large to plan for"
    return None
