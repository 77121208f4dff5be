# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps from one sharding to another, each of which is one op of sdy, and collectives with the shardings after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, is_strict_prefix, sort_and_merge


@dataclass(frozen=True, slots=True)
class SliceAlong:
    """A slice of each dimension along axes that become its minor-most; `sharding` is the sharding after it."""

    axes_per_dim: tuple[Axes, ...]
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class GatherAlong:
    """A gather of each dimension along its minor-most axes; `sharding` is the sharding after it."""

    axes_per_dim: tuple[Axes, ...]
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class MoveAxes:
    """A move of the minor-most axes of one dimension to the end of another; `sharding` is the sharding after it."""

    axes: Axes
    src_dim: int
    tgt_dim: int
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class ExchangeShards:
    """An exchange in which each device sends its shard to another one; dimensions keep their numbers of shards."""

    sharding: TensorSharding


CollectiveStep = SliceAlong | GatherAlong | MoveAxes | ExchangeShards
Meshes = Mapping[str, Mesh]


class ReshardError(ValueError):
    """The error for shardings that no steps connect; the message has the reason."""


@dataclass(frozen=True, slots=True)
class ReduceAlong:
    """A reduction of partial values along `axes`, along which the source is unreduced."""

    axes: Axes
    reduction: ReductionOp
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class Reshard:
    """A change of the dimensions; the unreduced axes stay."""

    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class ReplicatedToUnreduced:
    """A step that makes values that are replicated along `axes` partial along them."""

    axes: Axes
    sharding: TensorSharding


@dataclass(frozen=True, slots=True)
class ShardedToUnreduced:
    """A step that makes shards along the minor-most axes of each dimension partial values of larger shards."""

    axes_per_dim: tuple[Axes, ...]
    sharding: TensorSharding


ShardingStep = ReduceAlong | Reshard | ReplicatedToUnreduced | ShardedToUnreduced


def steps_between(
    source: TensorSharding | None, target: TensorSharding | None, meshes: Meshes, *, with_reshard: bool
) -> tuple[ShardingStep, ...]:
    """Returns the steps from `source` to `target`; without `with_reshard` only those that change unreduced axes.

    None is a tensor without a sharding. Raises ReshardError if unreduced axes are of different meshes.
    """
    steps: list[ShardingStep] = []
    now = source
    if source is not None and (step := reduction(source, target, meshes)) is not None:
        steps.append(step)
        now = step.sharding
    if now is not None and target is not None and (more := steps_to_unreduced(now, target, meshes)):
        steps += more
        now = more[-1].sharding
    if with_reshard:
        if target is None and now is not None:
            target = TensorSharding.fully_closed(now.rank, now.mesh_or_ref)
        # As in Shardy, a tensor without a sharding may also be used as partial values if these are not sharded.
        is_reached = target is None or (target.is_fully_replicated if now is None else target.is_equivalent(now))
        if target is not None and not is_reached:
            steps.append(Reshard(target))
    return tuple(steps)


def reduction(source: TensorSharding, target: TensorSharding | None, meshes: Meshes) -> ReduceAlong | None:
    """Returns the reduction along the unreduced axes that the target does not have; None if it has all of them.

    Raises ReshardError if the source is unreduced and the target is on another mesh.
    """
    if not source.unreduced_axes:
        return None
    mesh = _common_mesh(source, target, meshes)
    return reduction_except(source, () if target is None else target.unreduced_axes, mesh)


def reduction_except(source: TensorSharding, kept: Axes, mesh: Mesh) -> ReduceAlong | None:
    """Returns the reduction along all unreduced axes that are not in `kept`; None if all are."""
    axes = axes_difference(source.unreduced_axes, kept, mesh)
    if not axes:
        return None
    left = axes_difference(source.unreduced_axes, axes, mesh)
    return ReduceAlong(axes, source.reduction_op, replace(source, unreduced_axes=left))


def steps_to_unreduced(source: TensorSharding, target: TensorSharding, meshes: Meshes) -> tuple[ShardingStep, ...]:
    """Returns the steps that make the tensor partial along the unreduced axes that the target adds to the source's.

    They are empty if the target adds none; else they end with the dimensions of the target. The unreduced axes of the
    source must be a subset of the target's. Raises ReshardError if the meshes differ.
    """
    if not target.unreduced_axes:
        return ()
    mesh = _common_mesh(source, target, meshes)
    added = axes_difference(target.unreduced_axes, source.unreduced_axes, mesh)
    if not added:
        return ()
    from_sharded = tuple(
        _sharded_to_unreduced(before.axes, after.axes, added, mesh)
        for before, after in zip(source.dim_shardings, target.dim_shardings, strict=True)
    )
    dims: list[DimensionSharding] = []
    for before, after, axes in zip(source.dim_shardings, target.dim_shardings, from_sharded, strict=True):
        dims.append(before if axes else after)
    steps: list[ShardingStep] = []
    now = source
    if any(before.axes != dim.axes for before, dim in zip(source.dim_shardings, dims, strict=True)):
        now = replace(source, dim_shardings=tuple(dims))
        steps.append(Reshard(now))
    replicated = axes_difference(added, [axis for axes in from_sharded for axis in axes], mesh)
    if replicated:
        unreduced = sort_and_merge((*source.unreduced_axes, *replicated), mesh)
        now = replace(target, mesh_or_ref=source.mesh_or_ref, dim_shardings=tuple(dims), unreduced_axes=unreduced)
        steps.append(ReplicatedToUnreduced(replicated, now))
    if any(from_sharded):
        steps.append(ShardedToUnreduced(from_sharded, target))
    return tuple(steps)


def _sharded_to_unreduced(before: Axes, after: Axes, added: Axes, mesh: Mesh) -> Axes:
    """Returns the last axes of a dimension, which become unreduced; () if the target is not unreduced along all."""
    if not is_strict_prefix(after, before):
        return ()
    cut: tuple[AxisRef, ...] = ()
    if after and after[-1] != before[len(after) - 1]:
        suffix = before[len(after) - 1].suffix_without_overlap(after[-1], mesh)
        cut = () if suffix is None else (suffix,)
    axes = cut + before[len(after) :]
    return () if axes_difference(axes, added, mesh) else axes


def _common_mesh(source: TensorSharding, target: TensorSharding | None, meshes: Meshes) -> Mesh:
    mesh = mesh_of(source, meshes)
    other = mesh if target is None else mesh_of(target, meshes)
    if mesh is None or other is None or mesh != other:
        assert target is not None or mesh is None
        raise ReshardError(
            f"a tensor unreduced along mesh axes cannot be resharded from {source} to {target}: the meshes must be "
            "equal"
        )
    return mesh
