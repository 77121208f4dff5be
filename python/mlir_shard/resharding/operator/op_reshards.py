# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reshards around one op that make its operands and results compatible with its sharding rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mlir_shard.resharding.operator.common_axes import (
    AxesPerFactor,
    MeshAndRef,
    common_axes,
    common_axes_of_factor,
    mesh_of,
    op_mesh,
)
from mlir_shard.resharding.operator.reshape import axes_of_reshape
from mlir_shard.resharding.sharding_steps import ReshardError
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, any_overlap, axes_difference, sort_and_merge
from mlir_shard.sharding.projection import ShardingProjection


def dot_with_result_of_operands(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int]
) -> ShardingProjection:
    """Returns the projection with another sharding of the result, or `projection` itself if that saves nothing.

    For an op with two operands and one result; `tensor_sizes` are in elements. The result is changed if the operands
    agree, the result disagrees with one of them in one factor, that operand is sharded there and no smaller than the
    result, and the result has there the axes of the contracted factors, in order.
    """
    lhs, rhs = projection.operands
    result = projection.results[0]
    conflict: tuple[int, Axes] | None = None
    reduced: Axes = ()
    seen: Axes = ()
    for factor in range(rule.num_factors):
        left, right = lhs.factors[factor], rhs.factors[factor]
        of_result = result.factors[factor]
        if left is not None and right is not None:
            if left.axes != right.axes:
                return projection
            size = max(tensor_sizes[:2])
            axes = left.axes
            if factor in rule.reduction_factors:
                reduced += axes
                continue
        elif (one := left or right) is not None:
            size = tensor_sizes[0 if left is not None else 1]
            axes = one.axes
            if any_overlap(axes, seen):
                return projection
            seen += axes
        else:
            continue
        if of_result is None or of_result.axes == axes:
            continue
        if not axes or conflict is not None or tensor_sizes[2] > size:
            return projection
        conflict = (factor, axes)
    if conflict is None:
        return projection
    factor, axes = conflict
    of_result = result.factors[factor]
    if not reduced or of_result is None or of_result.axes != reduced:
        return projection
    return projection.replace_tensor(2, result.update(factor, axes, of_result.overflow_axes))


Shardings = tuple[TensorSharding | None, ...]
ByFactor = tuple[OpShardingRule, ShardingProjection]
"""The rule of an op, with only the reductions that can be completed, and its shardings by the factors of that rule."""


class OpKind(Enum):
    """The kinds of ops that are resharded differently."""

    DOT = "two operands, contracted"
    RESHAPE = "one operand in another shape"
    INDEXING = "elements of an operand, or in it, at indices"
    OTHER = "any other"


@dataclass(frozen=True, slots=True)
class ShardedOp:
    """The properties of an op that its reshards depend on.

    `tensor_sizes` are in elements, of the operands, then the results. An op is not `reducible` if its partial results
    cannot be combined. `windows` are those known along permutation factors. `summands` is the number of partial sums,
    including the result, that are added and can be reduced together. `iterations` has, for each operand, the number of
    iterations of a loop that share it; it is empty if none is shared.
    """

    rule: OpShardingRule
    operands: Shardings
    results: Shardings
    tensor_sizes: tuple[int, ...]
    kind: OpKind = OpKind.OTHER
    reducible: bool = True
    windows: tuple[FactorWindow, ...] = ()
    summands: int = 1
    iterations: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpReshards:
    """The reshards around an op.

    `operands` has the shardings to which operands are resharded before the op, None for those that stay. `results` has
    the shardings of the op's results. `users` has the shardings to which results are resharded after the op, None for
    those that stay. Before that, all results are reduced along `reduced_axes`, which gives them the shardings
    `reduced`.
    """

    operands: Shardings
    results: Shardings
    users: Shardings
    reduced_axes: Axes
    reduced: tuple[TensorSharding, ...]


def reshards_around(op: ShardedOp, meshes: Mapping[str, Mesh], *, full: bool) -> OpReshards | None:
    """Returns the reshards that make the shardings of an op compatible; None if none are needed.

    With `full`, all tensors get the op's common axes. Without it, only the result of a dot is made to fit, if that is
    better than the default, and only results that are already unreduced are reduced further: then ReshardError is
    raised if the operands shard a reduction factor of such a result differently. Returns None also if the tensors share
    no mesh.
    """
    found = op_mesh((*op.operands, *op.results), meshes)
    if found is None:
        return None
    if full:
        return reshards_to(op, axes_of_factors(op, found), found, meshes)
    rule, before = _projection(op, found, full=False)
    after, partial = _minimally_compatible(op, rule, before)
    if after is before and not partial:
        return None
    return _reshards(op, (rule, before, after), partial, found, meshes, full=False)


def axes_of_factors(op: ShardedOp, on: MeshAndRef, by_factor: ByFactor | None = None) -> AxesPerFactor:
    """Returns the axes of each factor that the full version chooses, on the mesh that the op computes on."""
    rule, before = by_factor or _projection(op, on, full=True)
    if op.kind is OpKind.RESHAPE and before.tensors_with_overflow:
        return axes_of_reshape(before, rule, on[1])
    return common_axes(before, rule, op.tensor_sizes, on[1])


def reshards_to(
    op: ShardedOp,
    axes_per_factor: AxesPerFactor,
    on: MeshAndRef,
    meshes: Mapping[str, Mesh],
    by_factor: ByFactor | None = None,
) -> OpReshards | None:
    """Returns the reshards that give all tensors of an op these axes along its factors; None if none are needed."""
    rule, before = by_factor or _projection(op, on, full=True)
    after = before
    for factor, axes in enumerate(axes_per_factor):
        after = after.update(factor, axes)
    partial = tuple(axis for factor in rule.reduction_factors for axis in axes_per_factor[factor])
    return _reshards(op, (rule, before, after), partial, on, meshes, full=True)


def _projection(op: ShardedOp, on: MeshAndRef, *, full: bool) -> ByFactor:
    rule = op.rule if op.reducible or not full else with_unshardable_reductions(op.rule)
    return rule, ShardingProjection.build(op.operands, op.results, rule, on[1], closed_if_missing=True)


def _reshards(
    op: ShardedOp,
    change: tuple[OpShardingRule, ShardingProjection, ShardingProjection],
    partial: Axes,
    on: MeshAndRef,
    meshes: Mapping[str, Mesh],
    *,
    full: bool,
) -> OpReshards | None:
    """Returns the reshards from one projection to the other; after the op, results are partial along `partial`."""
    rule, before, after = change
    ref, mesh = on
    operands, results = after.to_shardings(rule, ref, mesh)
    changed = [new is not old for new, old in zip(after.tensors, before.tensors, strict=True)]
    if full:
        moved = [_is_elsewhere(sharding, mesh, meshes) for sharding in (*op.operands, *op.results)]
        if op.kind is OpKind.RESHAPE and before.tensors_with_overflow:
            pairs = zip((*operands, *results), (*op.operands, *op.results), strict=True)
            changed = [not new.is_equivalent(old) for new, old in pairs]
        changed = [one or other for one, other in zip(changed, moved, strict=True)]
    count = len(op.operands)
    new_operands = tuple(new if is_new else None for new, is_new in zip(operands, changed[:count], strict=True))
    own, users = _around_results(op.results, results, changed[count:], ref)
    first = op.results[0] if op.results else None
    reduced = axes_difference(partial, _kept_axes(first, full=full), mesh) if op.results else ()
    if not (any(changed) or reduced):
        return None
    missing = [TensorSharding.fully_closed(mapping.rank, ref) for mapping in rule.result_mappings]
    reduced_to = tuple(one or closed for one, closed in zip(own, missing, strict=True))
    return OpReshards(new_operands, own, users, sort_and_merge(reduced, mesh), reduced_to)


def with_unshardable_reductions(rule: OpShardingRule) -> OpShardingRule:
    """Returns the rule with unshardable reduction factors, for an op whose partial results no collective combines."""
    if not rule.reduction_factors:
        return rule
    whole = tuple(sorted(rule.need_replication_factors + rule.reduction_factors))
    return replace(rule, reduction_factors=(), need_replication_factors=whole)


def _minimally_compatible(
    op: ShardedOp, rule: OpShardingRule, before: ShardingProjection
) -> tuple[ShardingProjection, Axes]:
    first = op.results[0] if op.results else None
    after = before
    if op.kind is OpKind.DOT and first is not None:
        after = dot_with_result_of_operands(before, rule, op.tensor_sizes)
    partial: Axes = ()
    if first is not None and first.unreduced_axes:
        for factor in rule.reduction_factors:
            axes = common_axes_of_factor(after, factor)
            if axes is None:
                raise ReshardError("its result is unreduced, but its operands shard the reduced dimensions differently")
            partial += axes
    return after, partial


def _kept_axes(first: TensorSharding | None, *, full: bool) -> Axes:
    """Returns the axes along which results are not reduced: those along which they are unreduced.

    Without `full`, conflicts may stay: an axis of a reduction factor may also shard a result, which then has no partial
    values along it.
    """
    if first is None:
        return ()
    return first.unreduced_axes if full else first.unreduced_axes + first.sharding_axes


def _around_results(
    before: Shardings, new: Sequence[TensorSharding], changed: Sequence[bool], ref: str | Mesh
) -> tuple[Shardings, Shardings]:
    """Returns the shardings of the op's results, and the shardings that users of the changed results expect.

    An op has shardings for all results or for none: results without a sharding get an open one with the first change.
    """
    own = list(before)
    users: list[TensorSharding | None] = [None] * len(own)
    for index, is_new in enumerate(changed):
        if is_new:
            users[index] = own[index] or TensorSharding.fully_closed(new[index].rank, ref)
            own = [one or TensorSharding.fully_open(other.rank, ref) for one, other in zip(own, new, strict=True)]
            own[index] = new[index]
    return tuple(own), tuple(users)


def _is_elsewhere(sharding: TensorSharding | None, mesh: Mesh, meshes: Mapping[str, Mesh]) -> bool:
    """Returns whether a tensor is sharded over devices in another order than that of `mesh`."""
    if sharding is None or sharding.is_fully_replicated:
        return False
    own = mesh_of(sharding, meshes)
    return own is not None and own.device_ids != mesh.device_ids
