# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces ops that move elements along a sharded dimension, as pads, slices and windows do, by ops that do not."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import operations_named_in_post_order
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.resharding.operator.common_axes import op_mesh
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.rules import RuleError
from mlir_shard.rules.registry import depends_on_context
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.halo.moving_ops import (
    Surroundings,
    communicates_along,
    exchange_around,
)
from mlir_shard.transforms.halo.reverses import ReversedMeshes, reverse_across_devices
from mlir_shard.transforms.halo.split_reshapes import resolve_reshape
from mlir_shard.transforms.insertion import apply, put_after
from mlir_shard.transforms.limits import check_sizes, is_by_replica
from mlir_shard.transforms.shardings import listed_meshes, rule_cache

MOVING = ("stablehlo.pad", "stablehlo.slice")


@register
class ResolvePermutationFactors(ModulePass):
    """Exchanges the shards of permutation factors between neighbours, or replicates the factors.

    Operands and results must have one sharding, as after `sdy-insert-explicit-reshards`. With an exchange, a StableHLO
    pad, slice or reshape becomes a manual computation of collective permutes, and a reverse gets a result on a mesh
    with the devices in opposite order, which is resharded afterwards. No exchange is made over several hops in which
    each device would receive all shards. In that case, with `enable-halo-exchange` off, and for all other ops, the
    factors are replicated: operands are resharded before the op, and results after it. A reshape has no permutation
    factor; it is resolved if it splits or merges dimensions of uneven shards, unless it keeps the shard boundaries.
    """

    name = "sdy-resolve-permutation-factors"
    summary = "Resolves sharding on dimensions of permutation factors"

    enable_halo_exchange: bool = option(True, "exchange halos between neighbouring devices where possible")
    replica_count: int = option(1, "the number of replicas; if greater than 1, replica_id identifies a device")
    partition_count: int = option(1, "the number of partitions")

    def run(self, op: Any) -> None:
        by_replica = is_by_replica(op, self.replica_count, self.partition_count)
        check_sizes(op)
        around = Surroundings(listed_meshes(op), StablehloProgram(Channels.of(op), by_replica))
        resolve_permutation_factors(op, around, by_exchange=self.enable_halo_exchange)


def resolve_permutation_factors(module: Any, around: Surroundings, *, by_exchange: bool) -> None:
    """Resolves permutation factors as the pass does; raises PassFailure if an op has no valid rule."""
    meshes = ReversedMeshes(module)
    representatives = ModuleArrays(module, (sdy.SHARDING,)).representatives()
    names = {one.name for one in representatives if _may_resolve(one)}
    for one in operations_named_in_post_order(module, *names) if names else ():
        if one.name == "stablehlo.reshape":
            resolve_reshape(one, around, by_exchange=by_exchange)
            continue
        rule = _rule(one)
        if rule is None or not rule.permutation_factors or rule.is_custom_rule:
            continue
        if not (by_exchange and _exchange(one, around, meshes)):
            _replicate(one, rule, around)


def _may_resolve(op: Any) -> bool:
    """Returns whether ops of the same signature may need to be resolved."""
    if op.name.startswith(("sdy.", "func.", "builtin.")):
        return False
    if op.name == "stablehlo.reshape" or depends_on_context(op):
        return True
    rule = _rule(op)
    return rule is not None and bool(rule.permutation_factors)


def _rule(op: Any) -> OpShardingRule | None:
    try:
        return rule_cache().rule_for(op)
    except RuleError as error:
        raise PassFailure(str(error), error.op) from error


def _exchange(op: Any, around: Surroundings, meshes: ReversedMeshes) -> bool:
    if op.name in MOVING:
        return exchange_around(op, around)
    return op.name == "stablehlo.reverse" and reverse_across_devices(op, around, meshes)


def _replicate(op: Any, rule: OpShardingRule, around: Surroundings) -> None:
    """Reshards operands before and results after the op such that no permutation factor is sharded in it."""
    operands, results = ([sharding_of(value) for value in values] for values in (op.operands, op.results))
    found = op_mesh((*operands, *results), around.meshes)
    if found is None:
        return
    ref, mesh = found
    before = ShardingProjection.build(operands, results, rule, mesh, closed_if_missing=True)
    after = before
    for factor in rule.permutation_factors:
        if not (op.name in MOVING and _stays_local(op, factor, operands[0], results[0], around)):
            after = after.update(factor, ())
    new_operands, new_results = after.to_shardings(rule, ref, mesh)
    changed = [new is not old for new, old in zip(after.tensors, before.tensors, strict=True)]
    count = len(operands)
    with ir.InsertionPoint(op):
        for index, is_changed in enumerate(changed[:count]):
            if is_changed:
                op.operands[index] = apply(op.operands[index], [Reshard(new_operands[index])])
    for index in reversed(range(len(results))):
        if changed[count + index]:
            wanted = results[index] or TensorSharding.fully_closed(new_results[index].rank, ref)
            put_after(op, op.results[index], [Reshard(wanted)])
            sdy.set_sharding(op.results[index], new_results[index])


def _stays_local(
    op: Any, dim: int, operand: TensorSharding | None, result: TensorSharding | None, around: Surroundings
) -> bool:
    """Returns whether a pad or a slice, whose factors are its dimensions, needs no other shards along one."""
    found = op_mesh((operand,), around.meshes)
    if operand is None or found is None or not operand.is_equivalent(result):
        return False
    return not communicates_along(op, dim, operand.dim_shardings[dim].sharded_size(found[1]))
