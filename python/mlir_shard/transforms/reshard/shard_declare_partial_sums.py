# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that reducing collectives of a program reduce partial values, and declares these unreduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.passes.analyses import analysis, held_operations
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, sort_and_merge
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.insertion import REDUCTION_CODES
from mlir_shard.transforms.reshard.unreduced_axes import REDUCING_COLLECTIVES
from mlir_shard.transforms.shardings import listed_meshes, rule_cache, shardings_in

# Collectives of StableHLO in manual computations, and calls, whose functions declare the results.
_PASSING_ON = frozenset(("func.call", "stablehlo.all_reduce", "stablehlo.reduce_scatter"))


@register
class DeclarePartialSums(Pass):
    """Declares the operands of `sdy.all_reduce` and `sdy.reduce_scatter` unreduced if the op that produces them leaves
    partial values along the axes, as a contraction does along a sharded dimension.

    A tensor of a global program has one value, and a collective of sdy changes how devices hold it. So the operand of a
    reduction has to be unreduced along the axes: declared so in its sharding, or left so by the op that produces it.
    Any other operand is an error: if each device has the value itself, their sum is another value. A result that is
    declared unreduced although its op neither takes nor leaves partial values is an error too.
    """

    name = "shard-declare-partial-sums"
    anchor = "func.func"
    summary = "Marks operands that collectives reduce as unreduced"

    def run(self, op: Any) -> bool:
        is_changed = False
        meshes = listed_meshes(op)
        for maker in _declared_unreduced(op):
            _check_declared(maker, meshes)
        for collective in held_operations(op, *REDUCING_COLLECTIVES):
            value = collective.operands[0]
            sharding = sharding_of(value) or _replicated(collective)
            mesh = mesh_of(sharding, meshes)
            if mesh is None:
                continue
            missing = axes_difference(_reduced_axes(collective), sharding.unreduced_axes, mesh)
            if not missing:
                continue
            _check(collective, missing, mesh, meshes)
            unreduced = sort_and_merge((*sharding.unreduced_axes, *missing), mesh)
            declared = replace(sharding, unreduced_axes=unreduced, reduction_op=_kind(collective))
            sdy.set_sharding(value, declared)
            is_changed = True
        return is_changed


def _check(collective: Any, missing: Axes, mesh: Mesh, meshes: Mapping[str, Mesh]) -> None:
    owner = collective.operands[0].owner
    maker = None if isinstance(owner, ir.Block) else owner.operation
    partial = () if maker is None else _partial_axes(maker, mesh, meshes)
    left = axes_difference(missing, partial, mesh)
    listed = ", ".join(map(str, left or missing))
    if left:
        raise PassFailure(
            f"'{collective.name}' op reduces along {listed}, but its operand is not unreduced there: declare the "
            f"operand unreduced={{{listed}}} if it is a partial value, or remove the reduction",
            collective,
        )
    if maker is not None and (made := reduction_op(maker)) is not _kind(collective):
        what = "a reduction that sdy does not support" if made is None else made.value
        raise PassFailure(
            f"'{collective.name}' op reduces by {_kind(collective).value} along {listed}, but the partial values of "
            f"'{maker.name}' require {what}",
            collective,
        )


def _declared_unreduced(function: Any) -> list[Any]:
    """Returns the ops with an unreduced result, except ops of sdy and ops that pass values through regions."""
    if not any(one.unreduced_axes for one in analysis(shardings_in, function)):
        return []
    arrays = ModuleArrays(function)
    unreduced = [
        not op.name.startswith("sdy.")
        and op.name not in _PASSING_ON
        and not has_edges(op.name)
        and any(one is not None and one.unreduced_axes for one in map(sharding_of, op.results))
        for op in arrays.representatives()
    ]
    return list(map(arrays.operation, arrays.with_signatures(unreduced)))


def _check_declared(maker: Any, meshes: Mapping[str, Mesh]) -> None:
    for index, result in enumerate(maker.results):
        declared = sharding_of(result)
        mesh = None if declared is None else mesh_of(declared, meshes)
        if declared is None or mesh is None:
            continue
        taken = [axis for one in map(sharding_of, maker.operands) if one is not None for axis in one.unreduced_axes]
        left = axes_difference(declared.unreduced_axes, [*taken, *_partial_axes(maker, mesh, meshes)], mesh)
        if left:
            listed = ", ".join(map(str, left))
            raise PassFailure(
                f"'{maker.name}' op result {index} is declared unreduced along {listed}, but the op has no partial "
                "operands or results there: use sdy.replicated_to_unreduced for a replicated value",
                maker,
            )


def _replicated(collective: Any) -> TensorSharding:
    target: TensorSharding = collective.attributes["out_sharding"].value
    return TensorSharding.fully_closed(target.rank, target.mesh_or_ref)


def _reduced_axes(collective: Any) -> Axes:
    if collective.name == "sdy.all_reduce":
        axes: Axes = collective.attributes["reduction_axes"].value.value
        return axes
    return tuple(axis for axes in collective.attributes["reduce_scatter_axes"].value.value for axis in axes.value)


def _kind(collective: Any) -> ReductionOp:
    attributes = collective.attributes
    code = attributes["reduction_op"].value if "reduction_op" in attributes else 0
    return next(kind for kind, one in REDUCTION_CODES.items() if one == code)


def _partial_axes(maker: Any, mesh: Mesh, meshes: Mapping[str, Mesh]) -> Axes:
    """Returns the axes along which an operand of an op is sharded in a dimension that the op reduces."""
    rule = rule_cache().rule_for(maker)
    if rule is None or not rule.reduction_factors:
        return ()
    operands, results = (
        [one if one and mesh_of(one, meshes) == mesh else None for one in map(sharding_of, values)]
        for values in (maker.operands, maker.results)
    )
    projection = ShardingProjection.build(operands, results, rule, mesh)
    factors = (operand.factors[one] for operand in projection.operands for one in rule.reduction_factors)
    axes = {axis: None for factor in factors if factor is not None for axis in factor.all_axes}
    return sort_and_merge(tuple(axes), mesh)
