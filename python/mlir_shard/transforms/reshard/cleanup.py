# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of the export that remove ops and attributes that only propagation needs, or turn them into reshards."""

from __future__ import annotations

import dataclasses
from itertools import takewhile
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import replica_groups
from mlir_shard.ir.editing import operations_named, operations_with, remove_attributes, replace
from mlir_shard.ir.values import defining_op, has_one_use
from mlir_shard.passes.registry import Changes, Pass, register
from mlir_shard.sharding import DimensionSharding, TensorSharding
from mlir_shard.transforms.call_graph import main_function
from mlir_shard.transforms.kept_collectives import kept_collectives
from mlir_shard.transforms.shardings import Side, replace_shardings, set_shardings, shardings_in, shardings_of


@register
class DropShardingAndMesh(Pass):
    """Removes the attribute `sdy.sharding` from all operations, arguments and results, and the definitions of meshes.

    Operations of the sdy dialect keep the shardings in their own attributes, and the meshes that these name are kept. A
    reshard before a collective restores the sharding of its operand. Replica groups along axes of a mesh get the mesh
    itself.
    """

    name = "sdy-drop-sharding-and-mesh"
    anchor = "builtin.module"
    summary = "Removes meshes, and the shardings of all operations except those of sdy"

    def run(self, op: Any) -> None:
        with kept_collectives(op):
            remove_attributes(op, sdy.SHARDING)
            for function in operations_named(op, "func.func"):
                for side in Side:
                    set_shardings(function, side, [None] * len(shardings_of(function, side)))
        replica_groups.inline_meshes(op)
        named = {sharding.mesh_or_ref for sharding in shardings_in(op)}
        for mesh in operations_named(op, "sdy.mesh"):
            if mesh.attributes["sym_name"].value not in named:
                mesh.erase()


@register
class DropShardingRules(Pass):
    """Removes the attribute `sdy.sharding_rule` from all operations, except custom rules."""

    name = "sdy-drop-sharding-rules"
    anchor = "func.func"
    summary = "Drops the sharding rules of operations, except custom ones"
    needs = (sdy.SHARDING_RULE,)

    def run(self, op: Any) -> bool | Changes:
        found = operations_with(op, sdy.SHARDING_RULE)
        dropped = [one for one in found if not sdy.value(one.attributes[sdy.SHARDING_RULE]).is_custom_rule]
        for one in dropped:
            del one.attributes[sdy.SHARDING_RULE]
        return Changes(attributed=dropped) if dropped else False


DOTS = ("stablehlo.dot", "stablehlo.dot_general")


@register
class RemoveAllGatherReduceScatterForCMV1(Pass):
    """Removes each all-gather whose only user is a matmul. If none of a matmul's all-gathers is removed, and the
    matmul's only user is a reduce-scatter, the reduce-scatter is removed, and the matmul gets its sharding. A
    reduce-scatter of partial sums is kept.

    This leaves the communication to a compiler that overlaps it with the matmul (XLA's collective matmul).
    """

    name = "sdy-remove-all-gather-reduce-scatter-for-cmv1"
    anchor = "func.func"
    summary = "Removes the all-gather before, or the reduce-scatter after, a matmul"

    def run(self, op: Any) -> None:
        removed: list[Any] = []
        for dot in operations_named(op, *DOTS):
            found = [defining_op(operand, "sdy.all_gather") for operand in dot.operands]
            gathers = [one for one in found if one is not None and has_one_use(one.results[0])]
            removed += gathers or _scatter(dot)
        for collective in removed:
            collective.results[0].replace_all_uses_with(collective.operands[0])
            collective.erase()


def _scatter(dot: Any) -> list[Any]:
    """Returns the reduce-scatter to remove after a matmul, whose result gets its sharding; empty if none exists."""
    result = dot.results[0]
    if not has_one_use(result):
        return []
    user = next(iter(result.uses)).owner.operation
    sharding = sdy.get_sharding(result)
    if user.name != "sdy.reduce_scatter" or sharding is None or sharding.unreduced_axes:
        return []
    sdy.set_sharding(result, sdy.get_sharding(user.results[0]))
    return [user]


@register
class RemoveShardingGroups(Pass):
    """Erases every `sdy.sharding_group`."""

    name = "sdy-remove-sharding-groups"
    anchor = "builtin.module"
    summary = "Removes sharding groups after propagation"
    needs = ("sdy.sharding_group",)

    def run(self, op: Any) -> bool:
        members = operations_named(op, "sdy.sharding_group")
        for member in members:
            member.erase()
        return bool(members)


@register
class RemoveSubAxesInInputOutputShardings(Pass):
    """Removes the first sub-axis, and all axes after it, from each open dimension of the main function's arguments and
    results. Closed dimensions are the user's choice, and are kept."""

    name = "sdy-remove-sub-axes-in-input-output-shardings"
    anchor = "builtin.module"
    summary = "Removes sub-axes, and the axes after them, from open dimensions of inputs and outputs"

    def run(self, op: Any) -> bool:
        main = main_function(op)
        changed = [replace_shardings(main, side, lambda sharding, _: _without_sub_axes(sharding)) for side in Side]
        return any(changed)


def _without_sub_axes(sharding: TensorSharding) -> TensorSharding:
    return dataclasses.replace(sharding, dim_shardings=tuple(map(_full_axes, sharding.dim_shardings)))


def _full_axes(dim: DimensionSharding) -> DimensionSharding:
    if dim.is_closed:
        return dim
    return dim.with_axes(tuple(takewhile(lambda axis: axis.sub_axis_info is None, dim.axes)))


@register
class ShardingConstraintToReshard(Pass):
    """Replaces each `sdy.sharding_constraint` by an `sdy.reshard` to the same sharding."""

    name = "sdy-sharding-constraint-to-reshard"
    anchor = "func.func"
    summary = "Converts sharding constraints into reshards"
    needs = ("sdy.sharding_constraint",)

    def run(self, op: Any) -> bool | Changes:
        constraints = operations_named(op, "sdy.sharding_constraint")
        made = []
        for constraint in constraints:
            made.append(replace(constraint, "sdy.reshard", {}, dropped=()))
        return Changes(made) if made else False


@register
class BarrierToReshard(Pass):
    """Replaces each `sdy.propagation_barrier` by an `sdy.reshard`, or by its operand if that has the same sharding.

    A barrier without a sharding is also replaced by its operand.
    """

    name = "shard-barrier-to-reshard"
    anchor = "func.func"
    summary = "Converts propagation barriers whose operand and result shardings differ into reshards"
    needs = ("sdy.propagation_barrier",)

    def run(self, op: Any) -> bool:
        barriers = operations_named(op, "sdy.propagation_barrier")
        for barrier in barriers:
            value, result = barrier.operands[0], barrier.results[0]
            sharding = sdy.get_sharding(result)
            if sharding is not None and not sharding.is_equivalent(sharding_of(value)):
                attributes = {"sharding": sdy.attribute(sharding, op.context)}
                with ir.InsertionPoint(barrier):
                    made = ir.Operation.create("sdy.reshard", [result.type], [value], attributes, loc=barrier.location)
                value = made.results[0]
            result.replace_all_uses_with(value)
            barrier.erase()
        return bool(barriers)
