# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of ops that cut tensors, put them together, and write one into another."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.constants import is_constant_op
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.pad", "stablehlo.slice")
def shift(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, elements move by offsets that are known, so neighbours can exchange them."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op)
    return builder.add_resized(before, after, FactorType.PERMUTATION, blocked=options.conservative).build()


@sharding_rule("stablehlo.dynamic_slice")
def dynamic_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, the dimension has to be whole: which block holds the slice is not known."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    return RuleBuilder.for_op(op).add_resized(before, after, FactorType.NEED_REPLICATION, blocked=True).build()


def _has_constant_starts(op: Any) -> bool:
    starts = list(op.operands)[2:]
    return all(not isinstance(start.owner, ir.Block) and is_constant_op(start.owner.name) for start in starts)


@sharding_rule("stablehlo.dynamic_update_slice", context_key=_has_constant_starts)
def dynamic_update_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Every device writes into its own block what falls there of the update.

    Along a dimension where the update is smaller, it has to be whole unless it is known where it goes.
    """
    shape, update = (shape_of(operand.type) for operand in list(op.operands)[:2])
    starts = [None] * (len(op.operands) - 2)
    of_update = FactorType.PASS_THROUGH if _has_constant_starts(op) else FactorType.NEED_REPLICATION
    builder = RuleBuilder.for_op(op)
    for dim, (size, update_size) in enumerate(zip(shape, update, strict=True)):
        if size == update_size:
            builder.add_common_factor(dim, size)
        else:
            builder.add_factor([dim, None, *starts], [dim], size)
            builder.add_factor([None, dim, *starts], [None], update_size, of_update)
    return builder.build()


def _is_slice(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "stablehlo.slice"


def _joins_slices(op: Any) -> bool:
    """Whether all operands are slices, or all come from one tensor and some are slices of it: a rotation, say."""
    values = list(op.operands)
    sliced = [_is_slice(value) for value in values]
    if not any(sliced):
        return False
    sources = [value.owner.operands[0] if cut else value for value, cut in zip(values, sliced, strict=True)]
    return all(sliced) or all(source == sources[0] for source in sources)


@sharding_rule("stablehlo.concatenate", context_key=_joins_slices)
def concatenate(op: Any, options: RuleOptions) -> OpShardingRule:
    """The concatenated dimension has to be whole, but where slices are joined neighbours can exchange elements."""
    joined = op.attributes["dimension"].value
    type_ = FactorType.PERMUTATION if _joins_slices(op) else FactorType.NEED_REPLICATION
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim != joined:
            builder.add_common_factor(dim, size)
        elif not options.conservative:
            builder.add_common_factor(dim, size, type_)
    return builder.build()
