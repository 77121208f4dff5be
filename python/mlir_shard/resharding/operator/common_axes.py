# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The axes and the mesh along which an op computes; the shardings of its tensors may disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import (
    Axes,
    add_axis_or_merge,
    any_overlap,
    is_strict_prefix,
    total_size,
    truncate_at_overlap,
)
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import FactorType
from mlir_shard.sharding.tensor import mesh_of as mesh_of

AxesPerFactor = tuple[Axes, ...]
_PRECEDENCE = {
    FactorType.PASS_THROUGH: 3,
    FactorType.REDUCTION: 2,
    FactorType.PERMUTATION: 1,
    FactorType.NEED_REPLICATION: 0,
}


def common_axes(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> AxesPerFactor:
    """Returns axes for each factor such that the op can compute on shards.

    `tensor_sizes` are in elements, of the operands, then the results.
    """
    compatible = compatible_axes(projection, rule)
    if compatible is not None:
        return compatible
    is_unary = len(rule.non_scalar_tensors) == 2
    if is_unary and not rule.need_replication_factors and not rule.has_compound_dimensions:
        return _one_side(projection, rule, tensor_sizes, mesh)
    return _distribute_replicated(_best_candidates(projection, rule, tensor_sizes, mesh), rule, mesh)


def compatible_axes(projection: ShardingProjection, rule: OpShardingRule) -> AxesPerFactor | None:
    """Returns the axes of each factor if they are compatible, else None.

    All tensors have to agree, no two factors may share an axis, and no factor that needs replication may have one.
    Overflow axes are ignored.
    """
    result: list[Axes] = []
    seen: Axes = ()
    for factor in range(rule.num_factors):
        axes = common_axes_of_factor(projection, factor)
        if axes is None:
            return None
        if any_overlap(axes, seen) or (axes and factor in rule.need_replication_factors):
            return None
        result.append(axes)
        seen += axes
    return tuple(result)


def common_axes_of_factor(projection: ShardingProjection, factor: int) -> Axes | None:
    """Returns the axes that all tensors with the factor have along it; None if they disagree."""
    found = {sharding.axes for tensor in projection.tensors if (sharding := tensor.factors[factor]) is not None}
    if len(found) > 1:
        return None
    return found.pop() if found else ()


def _one_side(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> AxesPerFactor:
    """Returns axes for an op with two tensors, of which one keeps its sharding.

    This is the tensor that needs no permutation, else the larger one, else the one with more shards.
    """
    tensors = projection.tensors

    def preference(index: int) -> tuple[bool, int, int]:
        permuted = any(
            (sharding := tensors[index].factors[factor]) is not None and sharding.axes
            for factor in rule.permutation_factors
        )
        return (not permuted, tensor_sizes[index], tensors[index].sharding_size(mesh))

    one, other = rule.non_scalar_tensors
    if preference(one) < preference(other):
        one, other = other, one
    kept = [None if sharding is None else sharding.axes for sharding in tensors[one].factors]
    used = tuple(axis for axes in kept if axes is not None for axis in axes)
    result: list[Axes] = []
    for axes, sharding in zip(kept, tensors[other].factors, strict=True):
        if axes is None:
            axes = () if sharding is None else truncate_at_overlap(sharding.axes, used)
        result.append(axes)
    return tuple(result)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Axes that a factor may get; `weight` is the total size of the tensors whose axes of the factor begin so."""

    factor: int
    axes: Axes
    weight: int
    precedence: int
    added_size: int

    def key(self) -> tuple[object, ...]:
        order = tuple(axis.lexicographic_key() for axis in self.axes)
        return (self.weight, self.precedence, self.added_size, self.factor, len(order), order)


def _candidates(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> list[_Candidate]:
    result: list[_Candidate] = []
    for factor in range(rule.num_factors):
        had = [
            (sharding.axes, size)
            for tensor, size in zip(projection.tensors, tensor_sizes, strict=True)
            if (sharding := tensor.factors[factor]) is not None
        ]
        prefixes = {axes[:length] for axes, _ in had for length in range(1, len(axes) + 1)}
        for axes in sorted(prefixes, key=lambda one: [axis.lexicographic_key() for axis in one]):
            weight = sum(size for other, size in had if other == axes or is_strict_prefix(axes, other))
            precedence = _PRECEDENCE[rule.factor_type(factor)]
            result.append(_Candidate(factor, axes, weight, precedence, total_size(axes, mesh)))
    return result


def _best_candidates(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int], mesh: Mesh
) -> AxesPerFactor:
    """Returns axes for each factor: the heaviest candidate gets its axes, all others lose them, until none is left."""
    assigned: list[Axes] = [()] * rule.num_factors
    waits_for = _waits_for(rule)
    candidates = _candidates(projection, rule, tensor_sizes, mesh)
    while valid := [one for one in candidates if not waits_for[one.factor]]:
        best = max(valid, key=_Candidate.key)
        assigned[best.factor] = best.axes
        if total_size(best.axes, mesh) == rule.factor_sizes[best.factor]:
            for factors in waits_for:
                factors.discard(best.factor)
        candidates = [left for one in candidates if (left := _after(one, best, assigned[one.factor], mesh)) is not None]
    return tuple(assigned)


def _waits_for(rule: OpShardingRule) -> list[set[int]]:
    """Returns, for each factor, those right before it in a dimension: unless they are fully sharded, it is strided."""
    result: list[set[int]] = [set() for _ in range(rule.num_factors)]
    for mapping in rule.tensor_mappings:
        for dim in mapping.dim_mappings:
            for before, factor in zip(dim.factor_indices, dim.factor_indices[1:], strict=False):
                result[factor].add(before)
    return result


def _after(one: _Candidate, best: _Candidate, assigned: Axes, mesh: Mesh) -> _Candidate | None:
    """Returns the remainder of a candidate after `best` has been chosen; None if nothing remains."""
    if one.factor == best.factor:
        if not is_strict_prefix(best.axes, one.axes):
            return None
        return replace(one, added_size=_added_size(one.axes, best.axes, mesh))
    axes = truncate_at_overlap(one.axes, best.axes)
    if axes == one.axes:
        return replace(one, added_size=total_size(axes, mesh))
    if axes == assigned:
        return None
    return replace(one, axes=axes, added_size=_added_size(axes, assigned, mesh))


def _added_size(axes: Axes, assigned: Axes, mesh: Mesh) -> int:
    return total_size(axes, mesh) // total_size(assigned, mesh)


def _distribute_replicated(assigned: AxesPerFactor, rule: OpShardingRule, mesh: Mesh) -> AxesPerFactor:
    """Moves axes of factors that cannot be sharded to factors that every tensor has, as far as they fit."""
    result = list(assigned)
    for factor in rule.need_replication_factors:
        axes, result[factor] = result[factor], ()
        if all(rule.tensor_mappings[index].contains_factor(factor) for index in rule.non_scalar_tensors):
            _distribute(axes, result, rule, mesh)
    return tuple(result)


def _distribute(axes: Axes, assigned: list[Axes], rule: OpShardingRule, mesh: Mesh) -> None:
    rest = list(axes)
    for factor in rule.batching_factors:
        size, sharded = rule.factor_sizes[factor], total_size(assigned[factor], mesh)
        if not size or size % sharded:
            continue
        capacity = size // sharded
        while rest and capacity % rest[0].size(mesh) == 0:
            capacity //= rest[0].size(mesh)
            assigned[factor] = add_axis_or_merge(assigned[factor], rest.pop(0), mesh)


MeshAndRef = tuple[str | Mesh, Mesh]


def is_on_one_device(sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> bool:
    """Returns whether the sharding is on a maximal mesh."""
    mesh = None if sharding is None else mesh_of(sharding, meshes)
    return mesh is not None and mesh.is_maximal


def op_mesh(shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]) -> MeshAndRef | None:
    """Returns the mesh that most of the sharded tensors have, and the reference to it.

    The meshes have to be equal except for the order of devices; the empty mesh is compatible with any other. Returns
    None if they are not, if one is maximal or unknown, or if no tensor has a sharding. If nothing is sharded, a mesh
    without device ids is preferred.
    """
    common = _common_mesh(shardings, meshes)
    if common is None or common[1].is_maximal:
        return None
    best, most = common, 0
    counts: Counter[str | Mesh] = Counter()
    for sharding in shardings:
        if sharding is None or sharding.is_fully_replicated:
            continue
        counts[sharding.mesh_or_ref] += 1
        mesh = mesh_of(sharding, meshes)
        if mesh is not None and counts[sharding.mesh_or_ref] > most:
            best, most = (sharding.mesh_or_ref, mesh), counts[sharding.mesh_or_ref]
    return best


def _common_mesh(shardings: Sequence[TensorSharding | None], meshes: Mapping[str, Mesh]) -> MeshAndRef | None:
    common: MeshAndRef | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        mesh = mesh_of(sharding, meshes)
        if mesh is None:
            return None
        if common is None or common[1].is_empty:
            common = (sharding.mesh_or_ref, mesh)
        elif mesh.is_empty:
            continue
        elif not mesh.equals(common[1], ignore_device_ids=True):
            return None
        elif not mesh.device_ids:
            common = (sharding.mesh_or_ref, mesh)
    return common
