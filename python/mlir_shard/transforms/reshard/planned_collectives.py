# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of sdy, as operations: those of the cheapest plan from one sharding to another, and of greedy plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.resharding.greedy_plan import greedy_cost
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.sharding_steps import CollectiveStep, ExchangeShards, GatherAlong, SliceAlong
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    GridAxes,
    OneDimStep,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import (
    AllToAllParam,
    AllToAllParamList,
    AxisRef,
    AxisRefList,
    ListOfAxisRefLists,
    Mesh,
    ReductionOp,
    TensorSharding,
)
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, axes_difference, sort_and_merge
from mlir_shard.transforms.insertion import REDUCTION_CODES

DIRECT_EXCHANGE = "mlir_shard.direct_exchange"
"""The unit attribute of an `sdy.reshard` that stays: each device receives the elements of its target box that it lacks,
from devices that have them."""

# Costs are sums of floats.
TOLERANCE = 1e-9

_AXES_PER_DIM = {
    AllGather: ("sdy.all_gather", "gathering_axes"),
    AllSlice: ("sdy.all_slice", "slicing_axes"),
    ReduceScatter: ("sdy.reduce_scatter", "reduce_scatter_axes"),
}


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective to be built: an operation with one operand, and one result of the operand's type."""

    name: str
    attributes: dict[str, Any]

    @property
    def axes(self) -> Axes:
        """The axes along which its result is sharded, and along which it reduces."""
        found: list[AxisRef] = []
        for key, attribute in self.attributes.items():
            if key in ("out_sharding", "sharding"):
                found += sdy.value(attribute.maybe_downcast()).used_axes
            elif key == "reduction_axes":
                found += sdy.value(attribute.maybe_downcast()).value
        return tuple(found)


def collective_of(step: CollectiveStep, context: Any) -> Collective:
    """Returns the operation of the sdy dialect for a step."""
    attributes = {"out_sharding": sdy.attribute(step.sharding, context)}
    if isinstance(step, ExchangeShards):
        return Collective("sdy.collective_permute", attributes)
    if isinstance(step, SliceAlong):
        attributes["slicing_axes"] = sdy.attribute(_lists(step.axes_per_dim), context)
        return Collective("sdy.all_slice", attributes)
    if isinstance(step, GatherAlong):
        attributes["gathering_axes"] = sdy.attribute(_lists(step.axes_per_dim), context)
        return Collective("sdy.all_gather", attributes)
    param = AllToAllParam(step.axes, step.src_dim, step.tgt_dim)
    attributes["params"] = sdy.attribute(AllToAllParamList((param,)), context)
    return Collective("sdy.all_to_all", attributes)


def build(value: Any, collectives: Iterable[Collective], location: Any) -> Any:
    """Applies collectives to a value in order, at the current insertion point; returns the result."""
    for one in collectives:
        value = ir.Operation.create(one.name, [value.type], [value], one.attributes, loc=location).results[0]
    return value


@dataclass(frozen=True, slots=True)
class Problem:
    """The reshard of a tensor of `shape`, in elements, from one sharding to another."""

    source: TensorSharding
    source_mesh: Mesh
    target: TensorSharding
    target_mesh: Mesh
    shape: tuple[int, ...]
    element_size: int

    @property
    def layouts(self) -> tuple[TensorLayout, TensorLayout]:
        """The layouts of the tensor before and after the reshard; raises ValueError if one of them is invalid."""
        return (
            TensorLayout(self.source, self.source_mesh, self.shape),
            TensorLayout(self.target, self.target_mesh, self.shape),
        )

    @property
    def shares_grid(self) -> bool:
        """Whether both shardings split mesh axes such that one grid has all of their sub-axes."""
        used = (axis for sharding in (self.source, self.target) for axis in sharding.used_axes)
        try:
            Grid.of(self.source_mesh, used)
        except ValueError:
            return False
        return True


class PlannedCollectives:
    """Plans by one planner, as collectives.

    `implicit` axes are those along which the source is partial although its sharding does not have them, as the result
    of an op is before its all-reduce. The shardings between source and target omit them too.
    """

    def __init__(self, planner: Planner, context: Any, *, uses_direct_exchange: bool) -> None:
        self._planner = planner
        self._uses_direct_exchange = uses_direct_exchange
        self._context = context

    def collectives(self, problem: Problem, greedy: Sequence[CollectiveStep] | None) -> tuple[Collective, ...] | None:
        """Returns the collectives of the plan; None if the greedy plan, if it is given, is as cheap, or the only one.

        A greedy plan to another order of devices is as cheap if it has no more collectives, slices excepted. Between
        shardings that share no grid, a direct exchange receives least. Raises ValueError if a layout is invalid, or if
        no plan keeps to the limits of the planner.
        """
        source, _ = problem.layouts
        if not problem.shares_grid:
            return self._without_grid(problem)
        plan = self._plan(problem)
        if plan is None:
            return None
        if greedy is None:
            is_as_cheap = False
        elif problem.source_mesh != problem.target_mesh:
            moving = sum(not isinstance(step, SliceAlong) for step in greedy)
            is_as_cheap = moving <= plan.num_collectives
        else:
            is_as_cheap = self._cost(source, greedy, problem.element_size) <= plan.cost * (1 + TOLERANCE)
        if is_as_cheap:
            return None
        found = [self._collective(step, ()) for step in plan.steps]
        last = plan.steps[-1].after if plan.steps else source
        if last.mesh != problem.target_mesh and last.sharding.used_axes:
            # Each device has the shard that it needs, but the sharding has the order of devices of the other mesh.
            attributes = {"out_sharding": sdy.attribute(_said(problem.target, problem.target_mesh, ()), self._context)}
            found.append(Collective("sdy.collective_permute", attributes))
        return tuple(found)

    def _without_grid(self, problem: Problem) -> tuple[Collective, ...] | None:
        """Returns the direct exchange between layouts that share no grid if it is the plan, else None."""
        if not self._uses_direct_exchange:
            return None
        steps = self._planner.plan(*problem.layouts, problem.element_size).steps
        is_exchange = len(steps) == 1 and isinstance(steps[0].move, DirectExchange)
        return (self._direct_exchange(problem.target),) if is_exchange else None

    def reducing(
        self, problem: Problem, greedy: Sequence[CollectiveStep], implicit: Axes
    ) -> tuple[Collective, ...] | None:
        """Returns the same as `collectives` for a partial source; the greedy plan starts at the reduced source."""
        source, target = problem.layouts
        plan = self._plan(problem)
        if plan is None:
            return None
        cost = self._cost(source, greedy, problem.element_size, reduced_axes(source, target))
        if cost <= plan.cost * (1 + TOLERANCE):
            return None
        return tuple(self._collective(step, implicit) for step in plan.steps)

    def _plan(self, problem: Problem) -> Plan | None:
        """Returns the plan; None if the shardings share no grid, or if no operations express its steps."""
        if not problem.shares_grid:
            return None
        plan = self._planner.plan(*problem.layouts, problem.element_size)
        # A replicated tensor is the same in any order of devices, but its sharding is on one mesh.
        starts_there = not plan.steps or plan.steps[0].before.mesh == problem.source_mesh
        return plan if starts_there and all(map(_can_be_said, plan.steps)) else None

    def _cost(
        self, source: TensorLayout, steps: Sequence[CollectiveStep], element_size: int, reduced: Axes = ()
    ) -> float:
        """Returns the cost of a greedy plan; infinite if it has a collective of uneven shards, which is undefined."""
        try:
            return greedy_cost(source, steps, element_size, self._planner.cost_model, reduced)
        except ValueError:
            return inf

    def _collective(self, step: PlanStep, implicit: Axes) -> Collective:
        mesh, move = step.after.mesh, step.move
        sharding = _said(step.after.sharding, mesh, implicit)
        if isinstance(move, DirectExchange):
            return self._direct_exchange(sharding)
        attributes = {"out_sharding": sdy.attribute(sharding, self._context)}
        if isinstance(move, CollectivePermute):
            return Collective("sdy.collective_permute", attributes)
        if isinstance(move, AllReduce):
            axes = sort_and_merge((step.grid.atoms[axis] for axis in move.axes), mesh)
            attributes["reduction_axes"] = sdy.attribute(AxisRefList(axes), self._context)
            return Collective("sdy.all_reduce", attributes | self._reduction(move.reduction))
        moves = move.steps if isinstance(move, Together) else (move,)
        return self._along_dims(moves, step, attributes)

    def _direct_exchange(self, target: TensorSharding) -> Collective:
        attributes = {"sharding": sdy.attribute(target, self._context), DIRECT_EXCHANGE: ir.UnitAttr.get(self._context)}
        return Collective("sdy.reshard", attributes)

    def _along_dims(self, moves: Sequence[OneDimStep], step: PlanStep, attributes: dict[str, Any]) -> Collective:
        first = moves[0]
        if isinstance(first, AllToAll):
            params = [
                AllToAllParam(_refs(step, one.axes), one.source_dim, one.target_dim)
                for one in moves
                if isinstance(one, AllToAll)
            ]
            ordered = AllToAllParamList(tuple(sorted(params, key=lambda param: param.src_dim)))
            return Collective("sdy.all_to_all", attributes | {"params": sdy.attribute(ordered, self._context)})
        axes: list[Axes] = [()] * step.after.rank
        for one in moves:
            if not isinstance(one, AllToAll):
                axes[one.dim] = _refs(step, one.axes)
        name, key = _AXES_PER_DIM[type(first)]
        attributes[key] = sdy.attribute(ListOfAxisRefLists(tuple(map(AxisRefList, axes))), self._context)
        return Collective(
            name, attributes | (self._reduction(first.reduction) if isinstance(first, ReduceScatter) else {})
        )

    def _reduction(self, reduction: ReductionOp) -> dict[str, Any]:
        if reduction is ReductionOp.SUM:
            return {}
        type_ = ir.IntegerType.get_signless(32, self._context)
        return {"reduction_op": ir.IntegerAttr.get(type_, REDUCTION_CODES[reduction])}


def _can_be_said(step: PlanStep) -> bool:
    """Returns whether an operation expresses a step: only some operations change the order of devices."""
    return step.before.mesh == step.after.mesh or isinstance(step.move, CollectivePermute | DirectExchange)


def _refs(step: PlanStep, axes: GridAxes) -> tuple[AxisRef, ...]:
    return add_axes_or_merge((), (step.grid.atoms[axis] for axis in axes), step.grid.mesh)


def _said(sharding: TensorSharding, mesh: Mesh, implicit: Axes) -> TensorSharding:
    """Returns the sharding of a collective: closed, without replicated axes, priorities and `implicit` axes."""
    closed = TensorSharding.closed_with((dim.axes for dim in sharding.dim_shardings), sharding.mesh_or_ref)
    unreduced = axes_difference(sharding.unreduced_axes, implicit, mesh)
    return replace(closed, unreduced_axes=unreduced, reduction_op=sharding.reduction_op)


def _lists(axes_per_dim: tuple[Axes, ...]) -> ListOfAxisRefLists:
    return ListOfAxisRefLists(tuple(map(AxisRefList, axes_per_dim)))
