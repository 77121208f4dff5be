# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces each explicit change of sharding by collectives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op, has_one_use, users
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, Pass, PassFailure, register, shared
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.planner import shared_planner
from mlir_shard.resharding.sharding_steps import ReshardError
from mlir_shard.sharding import ReductionOp
from mlir_shard.transforms.common_grid import common_grid
from mlir_shard.transforms.device_sets import is_crossing
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.insertion import REDUCTION_CODES
from mlir_shard.transforms.reshard.collective_plans import CollectivePlans, OptimalPlans
from mlir_shard.transforms.reshard.gathered_operands import note_detour
from mlir_shard.transforms.reshard.planned_collectives import DIRECT_EXCHANGE, PlannedCollectives, build
from mlir_shard.transforms.shardings import listed_meshes

BARRIER = "sdy.propagation_barrier"


@register
class ReshardToCollectives(Pass):
    """Replaces each `sdy.reshard` by slices, permutes, all-to-alls and gathers, and removes those that move nothing.

    A tensor without a sharding is replicated. Collectives use the operand of an `sdy.propagation_barrier` in its place,
    as barriers have no effect after propagation. A reshard to or from a single device is kept, and so is one between
    meshes that differ in more than the order of devices, unless its result is replicated.

    With `planner=optimal`, the collectives are the cheapest by the cost model; Shardy's are kept if they cost no more.
    They split axes of the mesh into sub-axes only such that one grid has the sub-axes of the module.
    An all-reduce whose only user is a reshard is planned with it, and may become a reduce-scatter, or follow a slice.
    With `direct-exchange`, a reshard for which a direct exchange is cheapest is kept, with the unit attribute
    `mlir_shard.direct_exchange`: each device receives the elements of its target box that it lacks, from devices that
    have them.
    """

    name = "sdy-reshard-to-collectives"
    anchor = "func.func"
    summary = "Converts reshards into collectives"
    needs = ("sdy.reshard",)

    keep_redundant_reshards: bool = option(False, "keep reshards between equal shardings")
    planner: Literal["shardy", "optimal"] = option(
        "shardy", "the planner of collectives: Shardy's algorithm, or minimum cost"
    )
    objective: Literal["bytes", "time", "memory"] | None = option(
        None, "the cost that planner=optimal minimizes (default: the objective of `costs`, or time)"
    )
    costs: str = option("", "a TOML or JSON file with the latency and bandwidth of mesh axes, for planner=optimal")
    direct_exchange: bool = option(False, "keep reshards for which a direct exchange is cheapest, for planner=optimal")
    assumed_size: int = option(1024, "the assumed size of dynamic dimensions, for planner=optimal")

    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> bool | Changes:
        reshards = operations_named(op, "sdy.reshard")
        if not reshards:
            return False
        optimal = self._optimal(op) if self.planner == "optimal" else None
        keeps = self.keep_redundant_reshards
        plans = CollectivePlans(listed_meshes(op), op.context, keeps_redundant=keeps, optimal=optimal)
        gathers = Gathers(self.remarks_above)
        changes = reshards_to_collectives(reshards, plans, gathers)
        gathers.remark()
        return changes or False

    def _optimal(self, op: Any) -> OptimalPlans:
        if self.assumed_size <= 0:
            raise PassFailure(f"assumed-size must be a positive number of elements, got {self.assumed_size}", op)
        model = shared((CostModel, self.costs), lambda: _cost_model(self.costs, op))
        if self.costs:
            _check_links(model, self.costs, op)
        if self.objective is not None:
            model = replace(model, objective=Objective(self.objective))
        direct = self.direct_exchange
        planned, unsplit = (
            PlannedCollectives(
                shared_planner(model, uses_direct_exchange=direct, splits_axes=splits),
                op.context,
                uses_direct_exchange=direct,
            )
            for splits in (True, False)
        )
        return OptimalPlans(planned, unsplit, self.assumed_size, common_grid(op))


# New operations and those with new operands, by their result: the hash of an `ir.Operation` changes with its operands.
# Operations that are erased later must be removed.
_Changed = dict[Any, Any]


def reshards_to_collectives(reshards: Iterable[Any], plans: CollectivePlans, gathers: Gathers) -> Changes | None:
    """Replaces each `sdy.reshard` by the collectives of its plan.

    Returns the changed operations, or None if nothing has changed. Raises PassFailure if planning a reshard fails.
    """
    is_changed = False
    changed: _Changed = {}
    for reshard in reshards:
        is_changed |= _replace(reshard, plans, gathers, changed)
    return Changes(list(changed.values())) if is_changed else None


def _cost_model(path: str, op: Any) -> CostModel:
    if not path:
        return CostModel()
    try:
        return CostModel.of_file(path)
    except ValueError as error:
        raise PassFailure(f"costs: {error}", op) from error


def _check_links(model: CostModel, path: str, op: Any) -> None:
    meshes = listed_meshes(op).values()
    try:
        # Without named meshes nothing is checked, as shardings may have their meshes inline.
        if meshes:
            model.check_axes(axis for mesh in meshes for axis in mesh.axis_names)
    except ValueError as error:
        raise PassFailure(f"costs: cost model {path}: {error}", op) from error


def _replace(reshard: Any, plans: CollectivePlans, gathers: Gathers, changed: _Changed) -> bool:
    if is_crossing(reshard) or (plans.are_optimal and DIRECT_EXCHANGE in reshard.attributes):
        return False
    if plans.are_optimal and _replace_with_reduction(reshard, plans, changed):
        return True
    operand = value = reshard.operands[0]
    while (barrier := defining_op(value, BARRIER)) is not None:
        value = barrier.operands[0]
    source, target = sharding_of(value), reshard.attributes["sharding"]
    try:
        plan = plans.plan(source, target, value.type)
    except ReshardError as error:
        raise PassFailure(f"'sdy.reshard' op {error}", reshard) from error
    if plan is None:
        return False
    note_detour(gathers, reshard, (source, target.value), plan.collectives, plans.meshes)
    with ir.InsertionPoint(reshard):
        # A reshard between replicated tensors keeps the barriers before it.
        if plan.is_replicated:
            _put(reshard, operand, operand, changed)
        else:
            _put(reshard, value, build(value, plan.collectives, reshard.location), changed)
    return True


def _put(reshard: Any, value: Any, result: Any, changed: _Changed) -> None:
    """Replaces a reshard by `result`, which collectives compute from `value`, and adds the changed operations."""
    if result == value:
        for user in users(reshard.results[0]):
            changed[user.results[0] if len(user.results) else object()] = user
    made = result
    while made != value:
        changed[made] = op = made.owner.operation
        made = op.operands[0]
    reshard.results[0].replace_all_uses_with(result)
    _erase(reshard, changed)


def _erase(op: Any, changed: _Changed) -> None:
    changed.pop(op.results[0], None)
    op.erase()


def _replace_with_reduction(reshard: Any, plans: CollectivePlans, changed: _Changed) -> bool:
    """Replaces a reshard and an all-reduce that only it uses, if one plan is cheaper; returns whether it did."""
    reduction = defining_op(reshard.operands[0], "sdy.all_reduce")
    if reduction is None or not has_one_use(reduction.results[0]):
        return False
    value = reduction.operands[0]
    axes = reduction.attributes["reduction_axes"].value.value
    code = reduction.attributes["reduction_op"].value if "reduction_op" in reduction.attributes else 0
    kind = next(one for one in ReductionOp if REDUCTION_CODES[one] == code)
    try:
        plan = plans.plan_from_partial(sharding_of(value), axes, kind, reshard.attributes["sharding"], value.type)
    except ReshardError as error:
        raise PassFailure(f"'sdy.reshard' op {error}", reshard) from error
    if plan is None:
        return False
    with ir.InsertionPoint(reshard):
        _put(reshard, value, build(value, plan.collectives, reshard.location), changed)
    _erase(reduction, changed)
    return True
