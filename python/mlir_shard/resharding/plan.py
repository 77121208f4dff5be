# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan: the moves that bring a tensor from one layout to another, as steps with their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from math import inf, prod
from typing import NamedTuple

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.links import link_times
from mlir_shard.resharding.cost.lower_bound import LowerBound, lower_bound
from mlir_shard.resharding.cost.step_cost import StepCost, StepTraffic, step_cost, step_traffic
from mlir_shard.resharding.cost.traffic import MOST_DEVICES
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import AllSlice, Move, Placement, Together
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding.axes import total_size


@dataclass(frozen=True)
class PlanStep:
    """A move, the layouts before and after it, and its cost.

    The axes of the move are numbered in `grid`. `traffic` computes the bytes that each of `devices` receives and sends
    when they are needed.
    """

    move: Move
    grid: Grid
    before: TensorLayout
    after: TensorLayout
    cost: StepCost
    traffic: Callable[[], StepTraffic] = field(repr=False, compare=False)

    @property
    def time(self) -> float:
        """The time in seconds."""
        return self.cost.time

    @property
    def memory(self) -> int:
        """The most bytes that a device holds at once."""
        return self.cost.memory

    @property
    def total_bytes(self) -> int:
        """The bytes that all devices receive."""
        return self.cost.total_bytes

    @property
    def most_bytes(self) -> int:
        """The bytes received by the device that receives most."""
        return self.cost.bytes_received

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices of the mesh of `after`, in its order, then those that hold a shard only before the move."""
        return self.after.mesh.devices_with(self.before.mesh)

    @property
    def bytes_received(self) -> tuple[int, ...]:
        """The bytes that each device receives."""
        return self._traffic.received

    @property
    def bytes_sent(self) -> tuple[int, ...]:
        """The bytes that each device sends."""
        return self._traffic.sent

    @cached_property
    def _traffic(self) -> StepTraffic:
        return self.traffic()

    @property
    def placement(self) -> Placement:
        """The placement on `grid` at which the move begins, without axes of size 1.

        Raises ValueError if `before` is not along axes of the grid. This is the case only for a direct exchange between
        layouts that share no grid, where `grid` is the target's.
        """
        return without_single_devices(self.grid, self.grid.placement(self.before.sharding))

    @property
    def is_local(self) -> bool:
        """Whether the move is a slice, which needs no communication."""
        first = self.move.steps[0] if isinstance(self.move, Together) else self.move
        return isinstance(first, AllSlice)


@dataclass(frozen=True)
class Plan:
    """The steps from `source` to `target` of a tensor with elements of `element_size` bytes.

    `cost` is in units of the objective: bytes or seconds. `cost_bound` is a lower bound of the cost of any plan, equal
    to `cost` if the search has proved the plan optimal.
    """

    source: TensorLayout
    target: TensorLayout
    element_size: int
    steps: tuple[PlanStep, ...]
    cost: float
    cost_bound: float

    @cached_property
    def bound(self) -> LowerBound:
        """The lower bound of the bytes received in any plan."""
        return lower_bound(self.source, self.target, self.element_size)

    @property
    def time(self) -> float:
        """The seconds that all steps take, one after the other."""
        return sum(step.time for step in self.steps)

    @property
    def total_bytes(self) -> int:
        """The bytes that all devices receive in all steps."""
        return sum(step.total_bytes for step in self.steps)

    @property
    def bytes_received(self) -> int:
        """The bytes received in all steps by the device that receives most."""
        steps = [step for step in self.steps if step.most_bytes]
        if sum(step.total_bytes < step.most_bytes * step.after.mesh.total_size for step in steps) <= 1:
            # All devices receive the same in all steps but one.
            return sum(step.most_bytes for step in steps)
        return max(sum(of_device) for of_device in zip(*_by_device(self.steps), strict=True))

    @property
    def peak_memory(self) -> int:
        """The most bytes that a device holds at once."""
        own = max(self.element_size * local_elements(layout) for layout in (self.source, self.target))
        return max((step.memory for step in self.steps), default=own)

    @property
    def is_optimal(self) -> bool:
        """Whether the plan is proved to cost the least."""
        return self.cost <= self.cost_bound

    @property
    def gap(self) -> float:
        """The relative excess of the cost over its proved bound; 0 if the plan is optimal."""
        if self.is_optimal:
            return 0.0
        return self.cost / self.cost_bound - 1 if self.cost_bound > 0 else inf

    @property
    def bytes_over_bound(self) -> float:
        """The bytes received over the lower bound; 1 if both are 0."""
        if self.bound.total:
            return self.total_bytes / self.bound.total
        return inf if self.total_bytes else 1.0

    @property
    def num_collectives(self) -> int:
        """The number of steps that are not slices."""
        return sum(not step.is_local for step in self.steps)


def without_single_devices(grid: Grid, placement: Placement) -> Placement:
    """Returns the placement without grid axes of size 1, which have no effect on moves."""
    sizes = grid.sizes
    if 1 not in sizes:
        return placement
    dims = tuple(tuple(axis for axis in axes if sizes[axis] > 1) for axes in placement.dims)
    return placement._replace(dims=dims, unreduced=tuple(axis for axis in placement.unreduced if sizes[axis] > 1))


def _by_device(steps: tuple[PlanStep, ...]) -> list[list[int]]:
    """Returns, for each step, the bytes received by each device of the mesh of the last step's result."""
    if not steps:
        return []
    order = steps[-1].after.mesh.devices
    result = []
    for step in steps:
        if step.devices == order:
            result.append(list(step.bytes_received))
        else:
            received = dict(zip(step.devices, step.bytes_received, strict=True))
            result.append([received.get(device, 0) for device in order])
    return result


def local_elements(layout: TensorLayout) -> int:
    """Returns the number of elements of a local tensor, with its padding."""
    elements = 1
    for size in layout.local_shape:
        elements *= size
    return elements


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps, their cost in units of the objective, and a lower bound of the cost of any steps."""

    steps: tuple[PlanStep, ...]
    cost: float
    least: float


# The cost by the objective, then the costs that break ties.
Rank = tuple[float, float, int]


class Totals(NamedTuple):
    """Totals of successive steps.

    Attributes:
        seconds: the time.
        received: the bytes that all devices receive.
        most_received: the bytes received in each step by the device that receives most.
        peak: the most bytes held at once.
        num_steps: the number of steps.
    """

    seconds: float
    received: int
    most_received: int
    peak: int
    num_steps: int

    def then(self, other: Totals) -> Totals:
        """Returns the totals of these steps followed by others."""
        return Totals(
            self.seconds + other.seconds,
            self.received + other.received,
            self.most_received + other.most_received,
            max(self.peak, other.peak),
            self.num_steps + other.num_steps,
        )

    def rank(self, objective: Objective) -> Rank:
        """Returns the cost by the objective, then seconds, or for TIME bytes, and the number of steps."""
        if objective is Objective.TIME:
            return self.seconds, float(self.received), self.num_steps
        return float(self.received if objective is Objective.BYTES else self.peak), self.seconds, self.num_steps


def steps_totals(steps: tuple[PlanStep, ...], source: TensorLayout, element_size: int) -> Totals:
    """Returns the totals of steps that begin at `source`."""
    totals = _totals((step.cost for step in steps), source, element_size)
    assert totals is not None
    return totals


def _totals(
    costs: Iterable[StepCost], source: TensorLayout, element_size: int, most_seconds: float = inf
) -> Totals | None:
    """Returns the totals of steps of these costs; None if they take more than `most_seconds`."""
    seconds, received, most_received, peak, count = 0.0, 0, 0, 0, 0
    for cost in costs:
        seconds += cost.time
        if seconds > most_seconds:
            return None
        received += cost.total_bytes
        most_received += cost.bytes_received
        peak = max(peak, cost.memory)
        count += 1
    return Totals(seconds, received, most_received, peak if count else local_elements(source) * element_size, count)


def least_cost(source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel) -> float:
    """Returns a lower bound of the cost of any steps, in units of the objective.

    For BYTES it is the bytes that devices have to receive, for TIME the time of the device that has to receive most, on
    the fastest link, and for MEMORY the bytes of the larger local tensor of the two.
    """
    if model.objective is Objective.MEMORY:
        return float(max(map(local_elements, (source, target))) * element_size)
    total, most = _least_received(source, target, element_size)
    if model.objective is Objective.BYTES:
        return float(total)
    links = [model.link(axis.name) for mesh in (source.mesh, target.mesh) for axis in mesh.axes if axis.size > 1]
    if not total or not links:
        return 0.0
    return min(link.latency for link in links) + most / max(link.bandwidth for link in links)


def _least_received(source: TensorLayout, target: TensorLayout, element_size: int) -> tuple[int, int]:
    """Returns the least bytes that all devices together, and the device that receives most, have to receive.

    If more than `MOST_DEVICES` devices reduce, the bound holds wherever their partial values are, see `lower_bound`.
    """
    partials = total_size(reduced_axes(source, target), source.mesh)
    if partials == 1 or source.mesh.total_size <= MOST_DEVICES:
        bound = lower_bound(source, target, element_size)
        return bound.total, bound.maximum
    elements, devices = prod(source.shape), target.mesh.total_size // prod(target.blocks)
    total = elements * (devices + target.partials * (partials - 2))
    return total * element_size, local_elements(target) * element_size


def is_within_memory(steps: tuple[PlanStep, ...], model: CostModel) -> bool:
    """Returns whether no step exceeds the memory limit of a device."""
    return model.memory_limit is None or all(step.memory <= model.memory_limit for step in steps)


# A move and the placement after it.
PlacedMove = tuple[Move, Placement]


def plan_steps(
    source: TensorLayout,
    target: TensorLayout,
    grid: Grid,
    start: Placement,
    moves: Sequence[PlacedMove],
    element_size: int,
    model: CostModel,
) -> tuple[PlanStep, ...]:
    """Returns the steps of moves on a grid of one mesh, from `source`, whose placement is `start`, to `target`."""
    tensor = GridTensor(grid, source.shape, element_size)
    times = link_times(grid, model.link)
    steps = []
    before, layout = start, source
    for number, (move, after) in enumerate(moves, 1):
        if number == len(moves):
            next_layout = target
        else:
            next_layout = TensorLayout(grid.sharding(after, source.sharding.mesh_or_ref), source.mesh, source.shape)
        cost = step_cost(move, before, after, tensor, times)
        steps.append(PlanStep(move, grid, layout, next_layout, cost, partial(_traffic, move, before, after, tensor)))
        before, layout = after, next_layout
    return tuple(steps)


def _traffic(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> StepTraffic:
    return step_traffic(move, before, after, tensor).in_bytes(tensor.element_size)


def moves_totals(
    source: TensorLayout,
    grid: Grid,
    start: Placement,
    moves: Sequence[PlacedMove],
    element_size: int,
    model: CostModel,
    most_seconds: float = inf,
) -> Totals | None:
    """Returns the totals of the steps of these moves; None if they take more than `most_seconds`."""
    tensor = GridTensor(grid, source.shape, element_size)
    times = link_times(grid, model.link)
    placements = chain((start,), (after for _, after in moves))
    pairs = zip(placements, moves, strict=False)
    costs = (step_cost(move, before, after, tensor, times) for before, (move, after) in pairs)
    return _totals(costs, source, element_size, most_seconds)
