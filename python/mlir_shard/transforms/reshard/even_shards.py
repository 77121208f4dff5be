# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding of the tensors around an op such that their shards are even, where what the op computes can be cut out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import lcm
from typing import Any

from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.rule import FactorType
from mlir_shard.transforms.rule_cache import rule_cache

Shape = tuple[int, ...]

# Zeros added to what these sum over change no sum.
SUMMING = ("stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general", "stablehlo.reduce")


def even_shapes(op: Any, shardings: Sequence[TensorSharding], mesh: Mesh) -> list[Shape | None]:
    """Shapes of operands, then results, with even shards; None for a tensor whose type stays.

    Dimensions that are one factor of the op get one size in all tensors. Raises PassFailure where a dimension has to
    be padded and the op would mix the padding with the elements, or the dimension is dynamic.
    """
    values = [*op.operands, *op.results]
    rule = _rule(op)
    keys = [[_factors(rule, index, dim) for dim in range(sharding.rank)] for index, sharding in enumerate(shardings)]
    shards: defaultdict[Hashable, int] = defaultdict(lambda: 1)
    for value, sharding, of_dims in zip(values, shardings, keys, strict=True):
        for dim, (of, key) in enumerate(zip(sharding.dim_shardings, of_dims, strict=True)):
            count = of.sharded_size(mesh)
            if count > 1 and value.type.is_dynamic_dim(dim):
                raise _failure(op, f"dimension {dim} of {value.type} is sharded, and dynamic")
            shards[key] = lcm(shards[key], count)
    shapes: list[Shape | None] = []
    for value, of_dims in zip(values, keys, strict=True):
        if not isinstance(value.type, ir.RankedTensorType):
            shapes.append(None)
            continue
        shape = []
        for dim, key in enumerate(of_dims):
            size = value.type.shape[dim]
            padded = size if shards[key] == 1 else -(-size // shards[key]) * shards[key]
            if padded != size and not (rule is None or _may_pad(op, rule, key)):
                raise _failure(op, f"dimension {dim} of {value.type} is in {shards[key]} shards that are not even")
            shape.append(padded)
        shapes.append(tuple(shape) if shape != list(value.type.shape) else None)
    return shapes


def _rule(op: Any) -> OpShardingRule | None:
    if op.name == "sdy.reshard":
        return OpShardingRule.pointwise(op.results[0].type.shape, 1)
    return rule_cache().rule_for(op)


def _factors(rule: OpShardingRule | None, index: int, dim: int) -> tuple[int, ...]:
    """The factors of a dimension; without a rule it has nothing to do with others."""
    return (index, dim) if rule is None else rule.tensor_mappings[index].dim_mappings[dim].factor_indices


def _may_pad(op: Any, rule: OpShardingRule, factors: tuple[int, ...]) -> bool:
    if len(factors) != 1:
        return False
    kind = rule.factor_type(factors[0])
    if kind is FactorType.REDUCTION:
        return op.name in SUMMING and reduction_op(op) is ReductionOp.SUM
    return kind is FactorType.PASS_THROUGH


def _failure(op: Any, why: str) -> PassFailure:
    return PassFailure(f"'{op.name}' op cannot be partitioned alone: {why}", op)
