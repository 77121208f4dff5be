# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions that sdy has no word for take their operands in blocks, so that less has to be gathered."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir.editing import operations_where
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.reduction import combination_of, may_combine, reduction_op
from mlir_shard.sharding import OpShardingRule
from mlir_shard.transforms.shardings import rule_cache

_RESHARD = "sdy.reshard"


@register
class ReduceInBlocks(Pass):
    """Undoes reshards of an operand that do nothing but gather what the op reduces, where the op is a reduction whose
    partial results can be put together though not as partial values of sdy: a product, a bitwise operation, several
    results each with another operation, or a region of StableHLO.

    What `spmdize` makes of such ops in blocks is complete at once.
    """

    name = "shard-reduce-in-blocks"
    anchor = "func.func"
    summary = "Lets products, bitwise and other reductions work on blocks"

    def run(self, op: Any) -> bool:
        rules = rule_cache()
        changed = False
        for inner in operations_where(op, may_combine):
            if not any(defining_op(value, _RESHARD) for value in inner.operands):
                continue
            if not len(inner.results) or combination_of(inner) is None or reduction_op(inner) is not None:
                continue
            rule = rules.rule_for(inner)
            if rule is not None and rule.reduction_factors:
                changed |= _take_blocks(inner, rule)
        return changed


def _take_blocks(op: Any, rule: OpShardingRule) -> bool:
    changed = False
    for number, value in enumerate(op.operands):
        reshard = defining_op(value, _RESHARD)
        if reshard is None or not _gathers_reduced(reshard, rule, number):
            continue
        op.operands[number] = reshard.operands[0]
        if not list(reshard.results[0].uses):
            reshard.erase()
        changed = True
    return changed


def _gathers_reduced(reshard: Any, rule: OpShardingRule, number: int) -> bool:
    """Whether a reshard takes axes from dimensions of reduction factors, and leaves all others as they are."""
    before, after = sharding_of(reshard.operands[0]), sdy.get_sharding(reshard.results[0])
    if before is None or after is None or before.mesh_or_ref != after.mesh_or_ref or before.unreduced_axes:
        return False
    reduced = set(rule.reduction_factors)
    pairs = zip(before.dim_shardings, after.dim_shardings, rule.operand_mappings[number].dim_mappings, strict=True)
    return all(
        old.axes == new.axes or (not new.axes and set(of_dim.factor_indices) <= reduced) for old, new, of_dim in pairs
    )
