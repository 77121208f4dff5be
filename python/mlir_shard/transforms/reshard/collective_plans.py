# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives that reshards become, decided once for equal reshards."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.ir.values import element_size
from mlir_shard.resharding.greedy_plan import collectives_between
from mlir_shard.resharding.operator.common_axes import is_on_one_device, mesh_of
from mlir_shard.resharding.sharding_steps import ReshardError
from mlir_shard.sharding import Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, sort_and_merge
from mlir_shard.transforms.common_grid import CommonGrid
from mlir_shard.transforms.reshard.planned_collectives import Collective, PlannedCollectives, Problem, collective_of

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CollectivePlan:
    """The collectives that replace a reshard."""

    collectives: tuple[Collective, ...]
    is_replicated: bool = False

    @property
    def axes(self) -> Axes:
        """The axes and sub-axes along which tensors are sharded and reduced."""
        return tuple(axis for one in self.collectives for axis in one.axes)


@dataclass(frozen=True, slots=True)
class OptimalPlans:
    """The source of plans that are cheaper than Shardy's; dynamic dimensions count as `assumed_size`.

    Where the plans of `planned` have sub-axes that do not fit `grid`, those of `unsplit` are used, which have only axes
    and sub-axes of the shardings.
    """

    planned: PlannedCollectives
    unsplit: PlannedCollectives
    assumed_size: int
    grid: CommonGrid


class CollectivePlans:
    """The plans of reshards, by source, target and type."""

    def __init__(
        self, meshes: Mapping[str, Mesh], context: Any, *, keeps_redundant: bool, optimal: OptimalPlans | None = None
    ) -> None:
        self.meshes = meshes
        self._context = context
        self._keeps_redundant = keeps_redundant
        self._optimal = optimal
        self._known: dict[Hashable, CollectivePlan | None] = {}

    @property
    def are_optimal(self) -> bool:
        """Whether plans are the cheapest, rather than Shardy's."""
        return self._optimal is not None

    def plan(self, source: TensorSharding | None, target: Any, type_: Any) -> CollectivePlan | None:
        """Returns the plan from `source` to the sharding of the attribute `target`; None for a reshard that stays.

        Raises ReshardError if no collectives lead from one sharding to the other.
        """
        key = (source, target, type_)
        if key not in self._known:
            self._known[key] = self._decide(source, target.value, type_)
        return self._known[key]

    def plan_from_partial(
        self, source: TensorSharding | None, reduced: Axes, reduction: ReductionOp, target: Any, type_: Any
    ) -> CollectivePlan | None:
        """Returns the plan of a value that is partial along `reduced`, even if its sharding omits these axes; None if
        reducing it first is as cheap. Raises ReshardError."""
        key = (source, reduced, reduction, target, type_)
        if key not in self._known:
            self._known[key] = self._decide_partial(source, reduced, reduction, target.value, type_)
        return self._known[key]

    def _decide(self, source: TensorSharding | None, target: TensorSharding, type_: Any) -> CollectivePlan | None:
        if self._keeps_redundant and target.is_equivalent(source):
            return None
        ends = self._ends(source, target)
        if ends is None:
            return None
        if ends.source.is_fully_replicated and ends.target.is_fully_replicated:
            return CollectivePlan((), is_replicated=True)
        steps = collectives_between(ends.source, ends.target, _shape(type_), ends.mesh)
        greedy = CollectivePlan(tuple(collective_of(step, self._context) for step in steps))
        optimal = self._optimal
        problem = None if optimal is None else self._problem(ends, type_, optimal)
        if optimal is None or problem is None:
            return greedy
        plans: list[CollectivePlan] = []
        for planner, known in ((optimal.planned, steps), (optimal.unsplit, None)):
            try:
                planned = planner.collectives(problem, known)
            except ValueError as error:
                raise ReshardError(str(error)) from error
            plans.append(greedy if planned is None else CollectivePlan(planned))
            if optimal.grid.take(ends.mesh, plans[-1].axes):
                return plans[-1]
        # The shardings themselves have no grid.
        return plans[0]

    def _decide_partial(
        self, source: TensorSharding | None, reduced: Axes, reduction: ReductionOp, target: TensorSharding, type_: Any
    ) -> CollectivePlan | None:
        ends = self._ends(source, target, reduced)
        if ends is None or self._optimal is None or ends.mesh != ends.target_mesh:
            return None
        declared = ends.source.unreduced_axes
        reduced_source = replace(ends.source, unreduced_axes=axes_difference(declared, reduced, ends.mesh))
        implicit = axes_difference(reduced, declared, ends.mesh)
        partial = replace(
            ends.source, unreduced_axes=sort_and_merge((*declared, *implicit), ends.mesh), reduction_op=reduction
        )
        problem = self._problem(replace(ends, source=partial), type_, self._optimal)
        if problem is None:
            return None
        steps = collectives_between(reduced_source, ends.target, _shape(type_), ends.mesh)
        for planner in (self._optimal.planned, self._optimal.unsplit):
            try:
                planned = planner.reducing(problem, steps, implicit)
            except ValueError as error:
                raise ReshardError(str(error)) from error
            if planned is None:
                return None
            plan = CollectivePlan(planned)
            if self._optimal.grid.take(ends.mesh, plan.axes):
                return plan
        return None

    def _ends(self, source: TensorSharding | None, target: TensorSharding, reduced: Axes = ()) -> _Ends | None:
        """Returns both shardings with their meshes, by one name if these are equal; None for a reshard that stays."""
        if is_on_one_device(source, self.meshes) or is_on_one_device(target, self.meshes):
            return None
        if source is None:
            source = TensorSharding.fully_open(target.rank, target.mesh_or_ref)
        if target.is_fully_replicated:
            target = replace(target, mesh_or_ref=source.mesh_or_ref)
        mesh = mesh_of(source, self.meshes)
        target_mesh = mesh_of(target, self.meshes)
        if mesh is None or target_mesh is None or not mesh.equals(target_mesh, ignore_device_ids=True):
            return None
        if axes_difference(source.unreduced_axes, reduced, mesh) != target.unreduced_axes:
            raise ReshardError(
                f"from {source} to {target}: both must be unreduced along the same axes; "
                "sdy-insert-explicit-reshards inserts the required reductions"
            )
        if mesh == target_mesh:
            # Two names of one mesh: nothing moves, and no collective leads from one name to the other.
            target = replace(target, mesh_or_ref=source.mesh_or_ref)
        return _Ends(source, mesh, target, target_mesh)

    def _problem(self, ends: _Ends, type_: Any, optimal: OptimalPlans) -> Problem | None:
        """Returns the problem to plan; None if a sharding has axes of size 1, or elements have no size."""
        size = element_size(type_)
        used = (*ends.source.used_axes, *ends.target.used_axes)
        if size is None or any(axis.size(ends.mesh) == 1 for axis in used):
            return None
        devices = ends.mesh.total_size
        # Dynamic sizes are assumed to be divisible, as the local program has to assume too.
        assumed = -(-optimal.assumed_size // devices) * devices
        shape = tuple(assumed if one is None else one for one in _shape(type_))
        return Problem(ends.source, ends.mesh, ends.target, ends.target_mesh, shape, size)


@dataclass(frozen=True, slots=True)
class _Ends:
    source: TensorSharding
    mesh: Mesh
    target: TensorSharding
    target_mesh: Mesh


def _shape(type_: Any) -> Shape:
    return tuple(None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank))
