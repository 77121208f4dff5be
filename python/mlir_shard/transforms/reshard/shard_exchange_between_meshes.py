# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves values from one mesh to another one of different devices by the direct exchanges of the planner."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_before_barriers
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, operations_named
from mlir_shard.ir.values import element_size
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.planner import shared_planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.device_sets import MOVING, SOURCE, DeviceSets, Homes, Ref, is_crossing
from mlir_shard.transforms.reshard.planned_collectives import DIRECT_EXCHANGE
from mlir_shard.transforms.shardings import Side, set_shardings, shardings_of


@register
class ExchangeBetweenMeshes(Pass):
    """Replaces each move between meshes of different devices by an `sdy.reshard` that is a direct exchange.

    Its attribute `mlir_shard.source` is the sharding of its operand. If the planner finds it cheaper, the exchange
    leads to another sharding on the target mesh, and is followed by an `sdy.reshard` to the final sharding. Results of
    functions that are on a mesh, but have no sharding on it, are replicated there. A module whose meshes have the same
    devices is not changed.

    The pass fails if an op has operands on meshes of different devices.
    """

    name = "shard-exchange-between-meshes"
    anchor = "builtin.module"
    summary = "Exchanges tensors between meshes of different devices"

    def run(self, op: Any) -> bool:
        sets = DeviceSets(op)
        if not sets.are_several:
            return False
        for function in functions(op).values():
            if len(function.regions[0].blocks):
                _exchange(function, sets)
        return True


def _exchange(function: Any, sets: DeviceSets) -> None:
    homes = Homes(function, sets)
    # All ops are found before anything changes, as `homes` has only the present values.
    crossing = []
    for op in operations_named(function, *MOVING):
        home, target = homes.of(op.operands[0]), homes.of(op.results[0])
        if home is not None and target is not None and home != target and not is_crossing(op):
            crossing.append((op, home))
    last = operations_named(function, "func.return")[-1]
    results = shardings_of(function, Side.RESULTS)
    for index, value in enumerate(last.operands):
        home, sharding = homes.of(value), results[index]
        if home is None:
            continue
        if sharding is None or (wanted := sets.of(sharding)) is None:
            results[index] = TensorSharding.fully_closed(rank_of(value.type), home)
        elif home != wanted:
            with ir.InsertionPoint(last), last.location:
                op = sdy.ReshardOp(value, sharding=sharding).operation
            last.operands[index] = op.results[0]
            crossing.append((op, home))
    set_shardings(function, Side.RESULTS, results)
    for op, home in crossing:
        _replace(op, home, sets)


def _replace(op: Any, home: Ref, sets: DeviceSets) -> None:
    """Replaces an op by an exchange and, if the plan needs one, a reshard of its result to the sharding of the op."""
    value, result = op.operands[0], op.results[0]
    target = op.attributes["sharding"].value if "sharding" in op.attributes else sdy.get_sharding(result)
    source = sharding_before_barriers(value)
    assert target is not None, op
    if source is None or sets.of(source) != home:
        source = TensorSharding.fully_closed(rank_of(value.type), home)
    shardings = [source, *_between(op, source, target, sets)]
    with ir.InsertionPoint(op), op.location:
        exchanged = sdy.ReshardOp(value, sharding=shardings[1]).operation
        exchanged.attributes[SOURCE] = sdy.attribute(source, op.context)
        exchanged.attributes[DIRECT_EXCHANGE] = ir.UnitAttr.get(op.context)
        new = exchanged.results[0]
        if len(shardings) > 2:
            new = sdy.ReshardOp(new, sharding=target).result
    result.replace_all_uses_with(new)
    op.erase()


def _between(op: Any, source: TensorSharding, target: TensorSharding, sets: DeviceSets) -> list[TensorSharding]:
    """Returns the shardings after the exchange and the reshard that follows; raises PassFailure if no plan exists."""
    type_, result = op.operands[0].type, op.results[0]
    before, after = sdy.mesh_of(source, op), sdy.mesh_of(target, op)
    size = element_size(type_) if isinstance(type_, ir.RankedTensorType) else None
    if size is None or not type_.has_static_shape:
        where = f"from {sets.described(source.mesh_or_ref)} to {sets.described(target.mesh_or_ref)}"
        raise PassFailure(
            f"a value of type {result.type} cannot be exchanged {where}: only tensors of static shape are supported", op
        )
    shape = shape_of(type_)
    try:
        assert before is not None and after is not None, op
        source_layout, target_layout = TensorLayout(source, before, shape), TensorLayout(target, after, shape)
        plan = shared_planner(CostModel()).plan(source_layout, target_layout, max(size, 1))
    except ValueError as error:
        raise PassFailure(str(error), op) from error
    if not plan.steps or sets.is_separate(after):
        # On a separate mesh, only an exchange leads from one sharding to another.
        return [target]
    middle = plan.steps[0].after.sharding
    closed = TensorSharding.closed_with((dim.axes for dim in target.dim_shardings), target.mesh_or_ref)
    return [middle, target] if len(plan.steps) > 1 and middle.dim_shardings != closed.dim_shardings else [target]
