# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans between layouts that share no grid, through layouts that share a grid with the source or the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product, takewhile

from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.cost.links import Link
from mlir_shard.resharding.cost.lower_bound import segments_by_target
from mlir_shard.resharding.cost.step_cost import StepCost, StepTraffic
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.greedy_plan import collectives_between, move_of
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import (
    PlanStep,
    Steps,
    is_within_memory,
    least_cost,
    local_elements,
    plan_steps,
    steps_totals,
    without_single_devices,
)
from mlir_shard.resharding.seed_plans import layout_axes
from mlir_shard.resharding.sharding_steps import CollectiveStep
from mlir_shard.resharding.steps import CollectivePermute, DirectExchange, Move
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.sharding.axes import Axes


def exchange_step(
    source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel, most_messages: int
) -> PlanStep | None:
    """Returns the direct exchange; its move is on the grid of `target`.

    Returns None if its devices times its rounds exceed `most_messages`.
    """
    devices = max(source.mesh.total_size, target.mesh.total_size)
    if _num_tiles(source, target) - devices > most_messages:
        return None
    messages = direct_exchange(source, target)
    if messages.num_rounds * devices > most_messages:
        return None
    traffic = StepTraffic(messages.bytes_received(element_size), messages.bytes_sent(element_size))
    grid = Grid.of(target.mesh, layout_axes(target))
    move = DirectExchange(without_single_devices(grid, grid.placement(target.sharding)))
    link = _slowest(source, target, model)
    busiest = max(traffic.received)
    if not source.mesh.has_same_devices(target.mesh):
        # Few devices may have to send to many.
        busiest = max(busiest, *traffic.sent)
    time = max(1, messages.num_rounds) * link.latency + busiest / link.bandwidth
    return _step(move, grid, source, target, traffic, time, element_size)


def _num_tiles(source: TensorLayout, target: TensorLayout) -> int:
    """Returns the number of tiles that make up all target boxes; a device holds at most one of its tiles before."""
    tiles = target.mesh.total_size
    for size, before, after in zip(source.shape, source.blocks, target.blocks, strict=True):
        tiles = tiles * sum(map(len, segments_by_target(size, before, after))) // after
    return tiles


def permutation_step(source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel) -> PlanStep:
    """Returns the permutation of devices; its move is on the grid of `target`. Raises ValueError if shards differ."""
    senders = device_permutation(source, target)
    local, moving = local_elements(source) * element_size, {one for one in senders if senders[one] != one}
    received = tuple(local if device in moving else 0 for device in target.mesh.devices)
    sending = {senders[one] for one in moving}
    traffic = StepTraffic(received, tuple(local if device in sending else 0 for device in target.mesh.devices))
    grid = Grid.of(target.mesh, layout_axes(target))
    move = CollectivePermute(without_single_devices(grid, grid.placement(target.sharding)).dims)
    link = _slowest(source, target, model)
    time = link.latency + max(received) / link.bandwidth if any(received) else 0.0
    return _step(move, grid, source, target, traffic, time, element_size)


def _step(
    move: Move,
    grid: Grid,
    source: TensorLayout,
    target: TensorLayout,
    traffic: StepTraffic,
    time: float,
    element_size: int,
) -> PlanStep:
    memory = (local_elements(source) + local_elements(target)) * element_size
    cost = StepCost(time, max(traffic.received), sum(traffic.received), memory)
    return PlanStep(move, grid, source, target, cost, lambda: traffic)


def _slowest(source: TensorLayout, target: TensorLayout, model: CostModel) -> Link:
    """Returns the worst link between any two devices: the largest latency and the smallest bandwidth of all links."""
    axes = (axis for mesh in (source.mesh, target.mesh) for axis in mesh.axes if axis.size > 1)
    links = [model.link(axis.name) for axis in axes] or [model.default]
    return Link(max(link.latency for link in links), min(link.bandwidth for link in links))


PlanOnGrid = Callable[[TensorLayout, TensorLayout, int], Steps]
PlanSteps = tuple[PlanStep, ...]


def steps_without_grid(
    source: TensorLayout,
    target: TensorLayout,
    element_size: int,
    model: CostModel,
    plan_on_grid: PlanOnGrid,
    *,
    most_messages: int,
) -> Steps:
    """Returns the cheapest steps found; `plan_on_grid` plans between layouts that share a grid.

    Raises ValueError if no steps are within the memory limit.
    """
    plans = _PlansOfPair(source, target, element_size, model, plan_on_grid)
    if source.mesh.has_same_devices(target.mesh):
        found = plans.on_one_mesh() if source.mesh == target.mesh else plans.between_meshes()
        if source.mesh.total_size <= most_messages:
            exchange = exchange_step(source, target, element_size, model, most_messages)
            found += [] if exchange is None else [(exchange,)]
    else:
        found = plans.between_devices()
    found = [steps for steps in found if is_within_memory(steps, model)]
    if not found:
        limit = model.memory_limit
        raise ValueError(f"no plan found from {source.sharding} to {target.sharding} within {limit} bytes per device")
    costs = {steps: steps_totals(steps, source, element_size).rank(model.objective) for steps in found}
    best = min(found, key=lambda steps: costs[steps])
    return Steps(best, costs[best][0], least_cost(source, target, element_size, model))


MOST_BETWEEN_DEVICES = 1 << 16
"""The most devices times rounds of an exchange between meshes of different devices, which no other move connects."""
MOST_BETWEEN = 32
"""The most intermediate layouts that are tried."""
MOST_TILES_BETWEEN = 1024
"""The most tiles of the target boxes of all intermediate layouts, as their messages have to be constructed."""


def _placed(axes: Sequence[AxisRef], dims: tuple[Axes, ...]) -> Iterator[tuple[Axes, ...]]:
    """Yields the axes of dimensions, in several ways with each of `axes` appended to one dimension or left out."""
    for places in islice(product(range(len(dims) + 1), repeat=len(axes)), MOST_BETWEEN):
        yield tuple(
            (*own, *(axis for axis, place in zip(axes, places, strict=True) if place == dim))
            for dim, own in enumerate(dims, 1)
        )


@dataclass(frozen=True, slots=True)
class _PlansOfPair:
    source: TensorLayout
    target: TensorLayout
    element_size: int
    model: CostModel
    plan_on_grid: PlanOnGrid

    def on_one_mesh(self) -> list[PlanSteps]:
        """Returns the plan through the axes that source and target can share, else through the replicated tensor."""
        shared = []
        wanted = layout_axes(self.target)
        for dim in self.source.sharding.dim_shardings:
            fitting = takewhile(lambda axis: all(axis.can_coexist(other) for other in wanted), dim.axes)
            shared.append(tuple(fitting))
        way = self._by(self._unsharded(self.source, shared))
        return [way] if way is not None else self._whole()

    def between_meshes(self) -> list[PlanSteps]:
        """Returns plans with a permutation of devices before, after or in between, or through the replicated tensor."""
        if not self.source.mesh.equals(self.target.mesh, ignore_device_ids=True):
            same = self.source.blocks == self.target.blocks
            return [self._permuted(self.source, self.target), *self._whole()] if same else self._whole()
        before, after = _moved_to(self.target, self.source), _moved_to(self.source, self.target)
        try:
            grid = Grid.of(self.source.mesh, layout_axes(self.source) + layout_axes(self.target))
        except ValueError:
            return self._whole()
        return [
            self._permuted(self.source, before) + self._planned(before, self.target),
            self._planned(self.source, after) + self._permuted(after, self.target),
            *self._greedy_plans(grid),
        ]

    def between_devices(self) -> list[PlanSteps]:
        """Returns plans that begin with a direct exchange to the target, or to another layout on its mesh.

        If a few devices would send the same data to many, another layout gives each of the many a part, which they
        share. Raises ValueError if there are too many tiles to exchange.
        """
        found: list[PlanSteps] = []
        least = least_cost(self.source, self.target, self.element_size, self.model)
        for middle in self._middles():
            exchange = exchange_step(self.source, middle, self.element_size, self.model, MOST_BETWEEN_DEVICES)
            if exchange is not None:
                found.append((exchange, *self._planned(middle, self.target)))
                if steps_totals(found[-1], self.source, self.element_size).rank(self.model.objective)[0] <= least:
                    break
        if not found:
            meshes = f"meshes {self.source.mesh} and {self.target.mesh}"
            raise ValueError(
                f"{meshes} have different devices, and the exchange from {self.source.sharding} to "
                f"{self.target.sharding} has too many tiles: at most {MOST_BETWEEN_DEVICES} in all rounds are "
                "supported"
            )
        return found

    def _middles(self) -> Iterator[TensorLayout]:
        """Yields the target, and other layouts on its mesh; first those that are sharded along additional axes."""
        yield self.target
        mesh, sharding = self.target.mesh, self.target.sharding
        if self.model.objective is Objective.BYTES:
            # No plan receives less than the exchange to the target.
            return
        own = tuple(dim.axes for dim in sharding.dim_shardings)
        axes = [axis for axis in map(AxisRef, mesh.axis_names) if axis.size(mesh) > 1]
        used = layout_axes(self.target)
        free = [axis for axis in axes if not any(axis.overlaps(other) for other in used)]
        nothing: tuple[Axes, ...] = ((),) * self.target.rank
        ways = dict.fromkeys((*_placed(free, own), *_placed(axes, nothing)))
        ways.pop(own, None)
        left = MOST_TILES_BETWEEN
        for dims in islice(ways, MOST_BETWEEN):
            middle = replace(self.target, sharding=TensorSharding.closed_with(dims, sharding.mesh_or_ref))
            if (tiles := _num_tiles(self.source, middle)) <= left:
                left -= tiles
                yield middle

    def _greedy_plans(self, grid: Grid) -> list[PlanSteps]:
        """Returns Shardy's greedy plan, with the permutation where shards are smallest; none if shards do not nest."""
        start, end = (replace(one.sharding, mesh_or_ref=one.mesh) for one in (self.source, self.target))
        steps = collectives_between(start, end, self.source.shape, self.source.mesh)
        cut = [axis for step in steps for dim in step.sharding.dim_shardings for axis in dim.axes]
        crossing = next(number for number, step in enumerate(steps) if step.sharding.mesh_or_ref == self.target.mesh)
        grid = Grid.of(self.source.mesh, (*grid.atoms, *cut))
        try:
            first = self._along(self.source, steps[:crossing], grid)
            middle = first[-1].after if first else self.source
            crossed = TensorLayout(self._own(steps[crossing].sharding), self.target.mesh, self.target.shape)
            rest = self._along(crossed, steps[crossing + 1 :], replace(grid, mesh=self.target.mesh))
            return [first + self._permuted(middle, crossed) + rest]
        except ValueError:
            # Shards that do not nest rule this plan out.
            return []

    def _along(self, layout: TensorLayout, steps: Sequence[CollectiveStep], grid: Grid) -> PlanSteps:
        if not steps:
            return ()
        tensor = GridTensor(grid, layout.shape, self.element_size)
        start = before = without_single_devices(grid, grid.placement(layout.sharding))
        placed = []
        for step in steps:
            if (move := move_of(grid, step)) is not None:
                before = tensor.after(move, before)
                placed.append((move, before))
        end = TensorLayout(self._own(steps[-1].sharding), layout.mesh, layout.shape)
        return plan_steps(layout, end, grid, start, placed, self.element_size, self.model)

    def _own(self, sharding: TensorSharding) -> TensorSharding:
        """Returns the sharding with the mesh reference of the source or the target."""
        of_target = sharding.mesh_or_ref == self.target.mesh
        return replace(sharding, mesh_or_ref=(self.target if of_target else self.source).sharding.mesh_or_ref)

    def _whole(self) -> list[PlanSteps]:
        nothing: list[Axes] = [()] * self.source.rank
        first, last = self._unsharded(self.source, nothing), self._unsharded(self.target, nothing)
        return [self._planned(self.source, first) + self._planned(last, self.target)]

    def _by(self, layout: TensorLayout) -> PlanSteps | None:
        try:
            return self._planned(self.source, layout) + self._planned(layout, self.target)
        except ValueError:
            return None

    def _unsharded(self, layout: TensorLayout, axes_per_dim: Sequence[Axes]) -> TensorLayout:
        """Returns a layout along these axes, partial along the unreduced axes of the target."""
        closed = TensorSharding.closed_with(axes_per_dim, layout.sharding.mesh_or_ref)
        reduction, unreduced = self.target.sharding.reduction_op, self.target.sharding.unreduced_axes
        return replace(layout, sharding=replace(closed, unreduced_axes=unreduced, reduction_op=reduction))

    def _planned(self, source: TensorLayout, target: TensorLayout) -> PlanSteps:
        return self.plan_on_grid(source, target, self.element_size).steps

    def _permuted(self, source: TensorLayout, target: TensorLayout) -> PlanSteps:
        step = permutation_step(source, target, self.element_size, self.model)
        return (step,) if step.total_bytes else ()


def _moved_to(of_mesh: TensorLayout, layout: TensorLayout) -> TensorLayout:
    """Returns a layout along the same axes of another mesh, the mesh of `of_mesh`."""
    sharding = replace(layout.sharding, mesh_or_ref=of_mesh.sharding.mesh_or_ref)
    return replace(layout, mesh=of_mesh.mesh, sharding=sharding)
