# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds operands that an op or a reshard gathers because no rule or plan could avoid it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.transforms.gathers import Gathers, shard_bytes
from mlir_shard.transforms.reshard.planned_collectives import Collective

Shardings = Sequence[TensorSharding | None]


def note_gathered_operands(
    gathers: Gathers, op: Any, rule: OpShardingRule, sides: tuple[Shardings, Shardings], meshes: Mapping[str, Mesh]
) -> None:
    """Notes the operands of `op` that are gathered along factors that cannot be sharded, at least in its result.

    `sides` are the shardings of the operands before and after their reshards, None after for operands without reshards.
    """
    if not (rule.need_replication_factors or rule.permutation_factors or rule.has_compound_dimensions):
        return
    texts, received = [], 0
    for index, (have, wanted) in enumerate(zip(*sides, strict=True)):
        if have is None or wanted is None:
            continue
        type_ = op.operands[index].type
        missing = shard_bytes(type_, wanted, mesh_of(wanted, meshes)) - shard_bytes(type_, have, mesh_of(have, meshes))
        found = _blocking_dim(rule, index, have, wanted, meshes) if missing > 0 else None
        if found is not None:
            texts.append(f"operand {index} gathered along dimension {found[0]}, {found[1]}")
            received += missing
    if texts:
        gathers.add(op, f"has {' and '.join(texts)}", received)


def _blocking_dim(
    rule: OpShardingRule, index: int, have: TensorSharding, wanted: TensorSharding, meshes: Mapping[str, Mesh]
) -> tuple[int, str] | None:
    """Returns the first dimension gathered along a factor that cannot be sharded, and the reason, or None."""
    meshes_of = mesh_of(have, meshes), mesh_of(wanted, meshes)
    if meshes_of[0] is None or meshes_of[1] is None:
        return None
    dims = zip(have.dim_shardings, wanted.dim_shardings, rule.operand_mappings[index].dim_mappings, strict=True)
    for dim, (before, after, mapping) in enumerate(dims):
        if after.sharded_size(meshes_of[1]) >= before.sharded_size(meshes_of[0]):
            continue
        if not set(rule.need_replication_factors).isdisjoint(mapping.factor_indices):
            return dim, "which its sharding rule requires to be unsharded"
        if not set(rule.permutation_factors).isdisjoint(mapping.factor_indices):
            return dim, "along which it moves elements to other devices"
        reason = _reshaped(rule, mapping.factor_indices, before.sharded_size(meshes_of[0]))
        if reason is not None:
            return dim, reason
    return None


def _reshaped(rule: OpShardingRule, factors: Sequence[int], shards: int) -> str | None:
    """Returns why a dimension of these factors is not sharded as before if its op merges or splits it, or None."""
    if not factors:
        return None
    merged = (dim.factor_indices for mapping in rule.result_mappings for dim in mapping.dim_mappings)
    if any(factors[0] in indices[1:] for indices in merged):
        return "which it merges behind another dimension that is not sharded"
    size = prod(rule.factor_sizes[factor] for factor in factors)
    part = size // rule.factor_sizes[factors[0]]
    if part > 1 and rule.factor_sizes[factors[0]] % shards:
        return f"which it splits into {rule.factor_sizes[factors[0]]:,} parts, not divisible by {shards:,} shards"
    return None


def note_detour(
    gathers: Gathers,
    reshard: Any,
    ends: tuple[TensorSharding | None, TensorSharding],
    collectives: Sequence[Collective],
    meshes: Mapping[str, Mesh],
) -> None:
    """Notes an intermediate gather of a reshard that makes shards larger than those at both ends."""
    # The last collective leads to the target, so its shards are not larger.
    if all(one.name != "sdy.all_gather" for one in collectives[:-1]):
        return
    type_ = reshard.operands[0].type

    def size(sharding: TensorSharding | None) -> int:
        return shard_bytes(type_, sharding, None if sharding is None else mesh_of(sharding, meshes))

    largest, before = max(map(size, ends)), ends[0]
    for collective in collectives:
        if "out_sharding" not in collective.attributes:
            return
        after = collective.attributes["out_sharding"].maybe_downcast().value
        if collective.name == "sdy.all_gather" and size(after) > largest:
            what = f"gathers its operand to {after} in the reshard from {ends[0]} to {ends[1]}"
            gathers.add(reshard, f"{what}, as no cheaper plan was found", size(after) - size(before))
        before = after
