# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planner: the cheapest plan that brings a tensor from one layout to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_search import GridSearch, WaySteps, move_between, placement_of
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import (
    PlacedMove,
    Plan,
    Rank,
    Steps,
    least_cost,
    moves_rank,
    plan_steps,
    without_single_devices,
)
from mlir_shard.resharding.search_space import ROUNDING, State
from mlir_shard.resharding.seed_plans import Course, known_courses, layout_axes
from mlir_shard.resharding.steps import AllReduce, DirectExchange, Move, Placement, ReduceScatter
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.resharding.without_common_grid import steps_without_grid

FEW_STATES = 20
"""Where a search is this short, a price is asked for, and nothing is tried that needs searches of its own."""

MOST_TO_EXCHANGE = 64
"""The devices up to which a direct exchange that reduces is tried; its messages have to be made to know their cost."""
MOST_TO_SEARCH = 16384
"""The devices up to which there is a search where what each receives has to be looked at."""
MOST_SPLIT_AXES = 5
"""Mesh axes are split in prime factors where that does not make more axes than these."""


class SameMeshPlanner:
    """Plans by one cost model."""

    def __init__(
        self, model: CostModel, most_states: int, *, most_messages: int, exchange_reduces: bool, splits_axes: bool
    ) -> None:
        self._model, self._most_messages, self._splits_axes = model, most_messages, splits_axes
        self._most_states, self._exchange_reduces = most_states, most_messages > 0 and exchange_reduces
        self._search = GridSearch(model, most_states, most_messages=most_messages)

    def steps(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Steps:
        """The steps of the plan; ValueError where the two share no grid, or none is within the memory."""
        course, cost, least = self._course(source, target, element_size)
        moves = course.grid, course.start, course.moves
        return Steps(plan_steps(source, target, *moves, element_size, self._model), cost, least)

    def cost(self, source: TensorLayout, target: TensorLayout, element_size: int) -> float:
        """The cost of the steps, without making them; ValueError as in `steps`."""
        return self._course(source, target, element_size)[1]

    def _course(self, source: TensorLayout, target: TensorLayout, element_size: int) -> tuple[Course, float, float]:
        """The best course, its cost, and what no course costs less than."""
        problem = _Problem(
            source, target, element_size, Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
        )
        finest = problem.on_finer_grid() if self._splits_axes else problem
        searched = finest if len(finest.grid.atoms) <= MOST_SPLIT_AXES else problem
        courses, least = self._searched(searched)
        if searched is not finest:
            # What is least on this grid may not be on a finer one.
            least = self._least(finest)
        if problem.from_state.unreduced and self._exchange_reduces:
            # The search has a direct exchange only where nothing has to be reduced.
            if source.mesh.total_size <= MOST_TO_EXCHANGE:
                courses.append(problem.exchange())
            else:
                least = min(least, least_cost(source, target, element_size, self._model))
        ranked = self._ranked(courses, problem)
        if not ranked or least < ranked[0][0][0] * (1 - ROUNDING):
            known = [*known_courses(source, target, element_size, splits_axes=self._splits_axes)]
            known += self._reduced_first(problem)
            ranked = sorted((*ranked, *self._ranked(known, problem)), key=lambda one: one[0])
        if not ranked:
            limit = self._model.memory_limit
            raise ValueError(f"no plan found from {source.sharding} to {target.sharding} in {limit} bytes a device")
        (cost, *_), course = ranked[0]
        return course, cost, cost if least >= cost * (1 - ROUNDING) else least

    def _reduced_first(self, problem: _Problem) -> Iterator[Course]:
        """Courses that first reduce what is partial, to replicated values or to shards of one dimension."""
        source = problem.source
        axes = problem.from_state.unreduced
        if not axes or self._most_states <= FEW_STATES:
            return
        firsts: list[Move] = [AllReduce(axes, problem.start.reduction)]
        firsts += [ReduceScatter(dim, axes, problem.start.reduction) for dim in range(source.rank)]
        for first in firsts:
            try:
                placement = problem.tensor.after(first, problem.start)
                sharding = problem.grid.sharding(placement, source.sharding.mesh_or_ref)
                reduced = TensorLayout(sharding, source.mesh, source.shape)
                rest, _, _ = self._course(reduced, problem.target, problem.element_size)
                if rest.grid == problem.grid:
                    yield Course(problem.grid, problem.start, ((first, placement), *rest.moves))
            except ValueError:
                # Uneven shards do not nest, or a step exceeds the memory limit.
                continue

    def _searched(self, problem: _Problem) -> tuple[list[Course], float]:
        """What a search finds, and what no course on the grid costs less than."""
        tensor = problem.tensor
        traffic = traffic_on(tensor.grid.sizes, tensor.shape)
        is_small = traffic.num_devices <= MOST_TO_SEARCH
        # No course that is known reduces and scatters at once.
        if is_small or problem.from_state.unreduced or traffic.is_always_in_digits:
            found = self._search.find(tensor, problem.from_state, problem.to_state, problem.end.unreduced)
            return [problem.course(found.steps)] if found.steps is not None else [], found.least
        rounds = traffic.exchange_rounds(problem.from_state.dims, problem.to_state.dims)
        exchanges = traffic.num_devices * rounds <= self._most_messages
        return [problem.exchange()] if exchanges else [], self._least(problem)

    def _least(self, problem: _Problem) -> float:
        if self._model.objective is Objective.MEMORY:
            return least_cost(problem.source, problem.target, problem.element_size, self._model)
        return self._search.least(problem.tensor, problem.from_state, problem.to_state, problem.end.unreduced)

    def _ranked(self, courses: Iterable[Course], problem: _Problem) -> list[tuple[Rank, Course]]:
        """Those within the memory, the best first."""
        ranked = []
        for course in courses:
            moves = course.grid, course.start, course.moves
            rank = moves_rank(problem.source, *moves, problem.element_size, self._model)
            if rank is not None:
                ranked.append((rank, course))
        return sorted(ranked, key=lambda one: one[0])


class _Problem:
    """Layouts as placements on a grid."""

    def __init__(self, source: TensorLayout, target: TensorLayout, element_size: int, grid: Grid) -> None:
        self.source, self.target, self.element_size, self.grid = source, target, element_size, grid
        self.tensor = GridTensor(grid, source.shape, element_size)
        self.start = without_single_devices(grid, grid.placement(source.sharding))
        self.end = without_single_devices(grid, grid.placement(target.sharding))
        reduced = tuple(axis for axis in self.start.unreduced if axis not in self.end.unreduced)
        self.from_state, self.to_state = State(self.start.dims, reduced), State(self.end.dims, ())

    def on_finer_grid(self) -> _Problem:
        """The problem on the finest grid of the mesh, this one where it is on that."""
        finest = self.grid.finest()
        return self if finest == self.grid else _Problem(self.source, self.target, self.element_size, finest)

    def course(self, steps: WaySteps) -> Course:
        """The course of the steps of a way."""
        moves: list[PlacedMove] = []
        before = self.start
        for kind, state in steps:
            after: Placement = placement_of(state, self.end.unreduced, self.start)
            moves.append((move_between(kind, before, after), after))
            before = after
        return Course(self.grid, self.start, tuple(moves))

    def exchange(self) -> Course:
        """The direct exchange."""
        return Course(self.grid, self.start, ((DirectExchange(self.end), self.end),))


MOST_BYTES = 10**200
"""The bytes of a tensor up to which what many devices hold and receive is counted and timed."""
MOST_MESSAGES = 1 << 16
"""The devices times the rounds up to which a direct exchange is planned: a program has tables of as many entries."""
MOST_STATES = 300
"""The states that a search looks at before it settles for what it has."""


class Planner:
    """Plans by one cost model, kept: the same problem is planned once.

    A dynamic dimension has no plan of its own: give the layouts the size to be assumed. Where the search looks at
    `most_states` states without an end, the plan has a `gap`.

    Args:
        uses_direct_exchange: plan direct exchanges too, where the messages of all devices are at most `most_messages`.
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
        self._plans: dict[tuple[TensorLayout, TensorLayout, int], Plan] = {}
        self._costs: dict[tuple[TensorLayout, TensorLayout, int], float] = {}
        self._most_messages = most_messages if uses_direct_exchange else 0
        self._same_mesh = SameMeshPlanner(
            self.cost_model,
            most_states,
            most_messages=self._most_messages,
            exchange_reduces=exchange_reduces,
            splits_axes=splits_axes,
        )

    def plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        """The plan from `source` to `target` of a tensor with elements of `element_size` bytes.

        ValueError where there is none, see `reduced_axes`, or none within the memory of the cost model, or where the
        element size is not positive, or the tensor beyond all measure.
        """
        key = source, target, element_size
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._plan(*key)
        return found

    def cost(self, source: TensorLayout, target: TensorLayout, element_size: int) -> float:
        """The cost of the plan, in units of the objective: seconds or bytes. ValueError as in `plan`.

        It is known sooner than the plan.
        """
        key = source, target, element_size
        if (plan := self._plans.get(key)) is not None:
            return plan.cost
        found = self._costs.get(key)
        if found is None:
            _check(source, target, element_size)
            if self._share_grid(source, target):
                found = self._same_mesh.cost(*key)
            else:
                found = self.plan(*key).cost
            self._costs[key] = found
        return found

    def _plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        _check(source, target, element_size)
        if self._share_grid(source, target):
            found = self._same_mesh.steps(source, target, element_size)
        else:
            found = steps_without_grid(
                source, target, element_size, self.cost_model, self._same_mesh.steps, most_messages=self._most_messages
            )
        return Plan(source, target, element_size, found.steps, found.cost, found.least)

    def _share_grid(self, source: TensorLayout, target: TensorLayout) -> bool:
        if source.mesh != target.mesh:
            return False
        try:
            Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
        except ValueError:
            return False
        return True


def _check(source: TensorLayout, target: TensorLayout, element_size: int) -> None:
    if element_size <= 0:
        raise ValueError(f"an element has at least 1 byte, not {element_size}")
    reduced_axes(source, target)
    if element_size * prod(source.shape) > MOST_BYTES:
        raise ValueError(f"a tensor of shape {list(source.shape)} is too large: its bytes are not counted")
