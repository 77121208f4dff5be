# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dimensions that ops combine the elements of, and that they have to have whole, are gathered."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir.editing import operations_where
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.partition import names_own_factors
from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.transforms.gathers import Gathers, remarks_above, shard_bytes
from mlir_shard.transforms.shardings import common_mesh, meshes_around
from mlir_shard.transforms.spmdize.block_computations import BlockComputations
from mlir_shard.transforms.spmdize.placed_values import Placed
from mlir_shard.transforms.spmdize.whole_tensors import gather_operand, slice_result, with_whole_dims


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
            after = [with_whole_dims(one, _dims(rule, number, whole)) for number, one in enumerate(before)]
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


def _dims(rule: OpShardingRule, operand: int, factors: set[int] | frozenset[int]) -> list[int]:
    """The dimensions of an operand that have one of the factors."""
    mappings = rule.operand_mappings[operand].dim_mappings
    return [dim for dim, mapping in enumerate(mappings) if not factors.isdisjoint(mapping.factor_indices)]
