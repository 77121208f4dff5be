# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules with dimensions made of several factors, where some of the factors may turn out to have size 1."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.sharding.rule import OpShardingRule, TensorMapping


def without_ones(rule: OpShardingRule) -> OpShardingRule:
    """The rule where no factor of size 1 is one of several of a dimension. Factors then in no tensor are left out."""

    def kept(mapping: TensorMapping) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(factor for factor in dim.factor_indices if rule.factor_sizes[factor] != 1) or dim.factor_indices[:1]
            for dim in mapping.dim_mappings
        )

    operands, results = list(map(kept, rule.operand_mappings)), list(map(kept, rule.result_mappings))
    used = sorted({factor for dims in (*operands, *results) for dim in dims for factor in dim})
    number = {factor: index for index, factor in enumerate(used)}

    def renumbered(factors: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[factor] for factor in factors if factor in number)

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in used),
        tuple(TensorMapping.of(*map(renumbered, dims)) for dims in operands),
        tuple(TensorMapping.of(*map(renumbered, dims)) for dims in results),
        renumbered(rule.reduction_factors),
        renumbered(rule.need_replication_factors),
        renumbered(rule.permutation_factors),
        renumbered(rule.blocked_propagation_factors),
        rule.is_custom_rule,
    )
