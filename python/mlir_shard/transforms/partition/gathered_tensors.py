# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values gathered to larger shards and sliced again, and reductions that need gathered dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_where
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.partition import names_own_factors
from mlir_shard.sharding import AxisRefList, DimensionSharding, ListOfAxisRefLists, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, greatest_common_prefix, sort_and_merge
from mlir_shard.transforms.gathers import Gathers, remarks_above, shard_bytes
from mlir_shard.transforms.partition.local_computations import BlockComputations, reduced_axes
from mlir_shard.transforms.partition.placed_values import Placed
from mlir_shard.transforms.shardings import common_mesh, meshes_around


def gather_operand(op: Any, number: int, mesh: Mesh, wanted: Placed | None) -> None:
    """Gives an op an operand in larger blocks, those of `wanted`, in whose dimensions its own begin."""
    value = op.operands[number]
    sharding = sharding_of(value)
    if sharding is None:
        return
    with ir.InsertionPoint(op), op.location:
        op.operands[number] = _gathered(value, sharding, _with_dims(sharding, _dims(sharding, wanted)), mesh)


def slice_result(op: Any, number: int, on: Placed, made: Placed | None, unreduced: Axes = ()) -> None:
    """Cuts a result that the op makes in the larger blocks `made` to those that it is in so far, on the mesh of `on`.

    Along axes in `unreduced` its users expect a sum, and only one device keeps what all have.
    """
    result, mesh = op.results[number], on.mesh
    closed = TensorSharding.fully_closed(result.type.rank, on.sharding.mesh_or_ref)
    sharding = sharding_of(result) or closed
    users = [(use.owner, use.operand_number) for use in result.uses]
    before = _with_dims(sharding, _dims(sharding, made))
    sdy.set_sharding(result, before)
    with ir.InsertionPoint.after(op), op.location:
        value = result
        if unreduced:
            before, sharding = (_unreduced(one, unreduced, mesh) for one in (before, sharding))
            in_order = AxisRefList(sort_and_merge(unreduced, mesh))
            attributes = {"axes": sdy.attribute(in_order), "out_sharding": sdy.attribute(before)}
            value = _moved("sdy.replicated_to_unreduced", value, attributes)
        value = _sliced(value, before, sharding, mesh)
    for user, operand in users:
        user.operation.operands[operand] = value
    if unreduced:
        _say_unreduced(value, unreduced, mesh)


def _say_unreduced(value: Any, axes: Axes, mesh: Mesh) -> None:
    """Says of what a value becomes that it is a part of a sum, up to where that is summed up."""
    for use in value.uses:
        user = use.owner.operation
        left = axes_difference(axes, reduced_axes(user), mesh)
        sharding = sharding_of(user.results[0]) if len(user.results) else None
        if not left or sharding is None or not axes_difference(left, sharding.unreduced_axes, mesh):
            continue
        sdy.set_sharding(user.results[0], _unreduced(sharding, left, mesh))
        _say_unreduced(user.results[0], left, mesh)


def with_whole_dims(placed: Placed | None, dims: Sequence[int]) -> Placed | None:
    """The tensor with some dimensions whole."""
    if placed is None:
        return None
    whole = {dim: DimensionSharding((), placed.sharding.dim_shardings[dim].is_closed) for dim in dims}
    return replace(placed, sharding=placed.sharding.replace_dims(whole))


def bring(value: Any, have: Placed | None, wanted: Placed | None) -> Any | None:
    """The value in other blocks, gathered as far as these differ and sliced; built at the current insertion point.

    None where the value is a part of a sum, which it then would not stay.
    """
    sharding = sharding_of(value)
    if sharding is not None and sharding.unreduced_axes:
        return None
    if have is not None and sharding is not None:
        of_wanted = _common(have, wanted)
        common = _with_dims(sharding, [DimensionSharding(axes, True) for axes in of_wanted])
        value = _gathered(value, sharding, common, have.mesh)
        sharding = common
    if wanted is None:
        return value
    target = replace(wanted.sharding, unreduced_axes=())
    if sharding is None or sharding.mesh_or_ref != target.mesh_or_ref:
        sharding = _with_dims(target, [DimensionSharding((), True)] * target.rank)
        value = _moved("sdy.reshard", value, {"sharding": sdy.attribute(sharding)})
    return _sliced(value, sharding, target, wanted.mesh)


def _common(have: Placed, wanted: Placed | None) -> Sequence[Axes]:
    """For each dimension the axes that both begin with."""
    if wanted is None or wanted.sharding.mesh_or_ref != have.sharding.mesh_or_ref:
        return [()] * have.sharding.rank
    pairs = zip(have.sharding.dim_shardings, wanted.sharding.dim_shardings, strict=True)
    return [greatest_common_prefix(of.axes, other.axes) for of, other in pairs]


def _dims(sharding: TensorSharding, placed: Placed | None) -> list[DimensionSharding]:
    """The axes of `placed`; where a dimension has no others but such of size 1, these as well."""
    if placed is None:
        return [DimensionSharding((), of.is_closed) for of in sharding.dim_shardings]
    return [
        of if of.sharded_size(placed.mesh) == kept.sharded_size(placed.mesh) else replace(of, axes=kept.axes)
        for of, kept in zip(sharding.dim_shardings, placed.sharding.dim_shardings, strict=True)
    ]


def _with_dims(sharding: TensorSharding, dims: Sequence[DimensionSharding]) -> TensorSharding:
    return replace(sharding, dim_shardings=tuple(dims))


def _unreduced(sharding: TensorSharding, axes: Axes, mesh: Mesh) -> TensorSharding:
    return replace(sharding, unreduced_axes=sort_and_merge((*sharding.unreduced_axes, *axes), mesh))


def _gathered(value: Any, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> Any:
    return _along("sdy.all_gather", "gathering_axes", value, _axes_between(before, after, mesh), after)


def _sliced(value: Any, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> Any:
    return _along("sdy.all_slice", "slicing_axes", value, _axes_between(after, before, mesh), after)


def _axes_between(finer: TensorSharding, coarser: TensorSharding, mesh: Mesh) -> list[Axes]:
    pairs = zip(finer.dim_shardings, coarser.dim_shardings, strict=True)
    return [axes_difference(of.axes, less.axes, mesh) for of, less in pairs]


def _along(name: str, key: str, value: Any, axes: Sequence[Axes], after: TensorSharding) -> Any:
    if not any(axes):
        return value
    lists = ListOfAxisRefLists(tuple(map(AxisRefList, axes)))
    return _moved(name, value, {key: sdy.attribute(lists), "out_sharding": sdy.attribute(after)})


def _moved(name: str, value: Any, attributes: Mapping[str, Any]) -> Any:
    return ir.Operation.create(name, [value.type], [value], dict(attributes)).results[0]


@register
class WholeReductions(Pass):
    """Gathers the dimensions of operands that an op reduces and that its partition rule has to have whole.

    Those of windows that overlap are such: partial results of blocks are no parts of what the op computes. Results
    that are summed up later are then kept by one device alone. Shards may be uneven: where they are even
    `shard-compute-whole` does that as well, but `sdy-pad-for-divisibility` finds no padding for such dimensions.
    """

    name = "shard-whole-reductions"
    anchor = "builtin.module"
    summary = "Gathers dimensions that ops reduce, and that they have to have whole"

    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> bool:
        gathers = Gathers(self.remarks_above)
        computations, meshes = BlockComputations(), meshes_around(op)
        has_changed = False
        for inner in operations_where(op, names_own_factors):
            rule = computations.rule_of(inner)
            found = common_mesh(map(sharding_of, inner.operands), meshes)
            if rule is None or found is None:
                continue
            mesh = found[1]
            whole = computations.unshardable(inner) & set(rule.reduction_factors)
            before = [_placed(value, mesh) for value in inner.operands]
            after = [with_whole_dims(one, _reduced_dims(rule, number, whole)) for number, one in enumerate(before)]
            if before == after:
                continue
            has_changed = True
            owed = computations.lost_sums(inner, before, after)
            tensors = {*zip(inner.operands, before, after, strict=True)}
            received = sum(_missing_bytes(value.type, *sides) for value, *sides in tensors)
            why = "has dimensions gathered that it reduces and that its partition rule needs unsharded"
            gathers.add(inner, why, received)
            for number, wanted in enumerate(after):
                gather_operand(inner, number, mesh, wanted)
            first = next(one for one in after if one is not None)
            for number, result in enumerate(inner.results if owed else ()):
                slice_result(inner, number, first, _placed(result, mesh), owed)
        gathers.remark()
        return has_changed


def _missing_bytes(type_: Any, have: Placed | None, wanted: Placed | None) -> int:
    if have is None or wanted is None:
        return 0
    return shard_bytes(type_, wanted.sharding, wanted.mesh) - shard_bytes(type_, have.sharding, have.mesh)


def _placed(value: Any, mesh: Mesh) -> Placed | None:
    sharding = sharding_of(value)
    return None if sharding is None else Placed(value.type, sharding, mesh)


def _reduced_dims(rule: OpShardingRule, operand: int, factors: set[int] | frozenset[int]) -> list[int]:
    """The dimensions of an operand that have one of the factors."""
    mappings = rule.operand_mappings[operand].dim_mappings
    return [dim for dim, mapping in enumerate(mappings) if not factors.isdisjoint(mapping.factor_indices)]
