# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a function around which tensors are in shards that are not even, read before anything is padded."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.registry import has_rule
from mlir_shard.transforms.reshard.sharded_function import UNSHARDED, ShardedFunction
from mlir_shard.transforms.shardings import COMPUTING, rule_cache
from mlir_shard.transforms.spmdize.padded_regions import REGION_OPS
from mlir_shard.transforms.spmdize.padded_values import PaddedValues
from mlir_shard.transforms.spmdize.padding_rules import UnevenOp


def uneven_ops(function: Any, values: PaddedValues) -> list[UnevenOp]:
    """The ops with an operand or a result in uneven shards, and the terminators in them, in pre-order.

    RuleError where one has no valid sharding rule.
    """
    read = ShardedFunction(function)
    uneven = _uneven_values(read, values)
    if not uneven:
        return []
    arrays, rules = read.arrays, rule_cache(COMPUTING)
    numbers = _around(read, uneven)
    found = []
    for number in numbers:
        op = arrays.operation(number)
        found.append(
            UnevenOp(
                op,
                rules.rule_for(op) if has_rule(op) or sdy.SHARDING_RULE in op.attributes else None,
                tuple(shape_of(operand.type) for operand in op.operands),
                tuple(shape_of(result.type) for result in op.results),
                values,
            )
        )
    return found


def _around(read: ShardedFunction, uneven: set[int]) -> list[int]:
    arrays = read.arrays
    parents, signatures = arrays.parents, arrays.signatures
    terminators = [op.name in ("sdy.return", "stablehlo.return") for op in read.representatives]
    regions = [op.name in REGION_OPS for op in read.representatives]
    found: set[int] = set()
    for op, signature in enumerate(signatures):
        around = (*arrays.operands(op), *arrays.results(op), *(arrays.arguments(op) if regions[signature] else ()))
        gives_results = terminators[signature] and parents[op] in found and regions[signatures[parents[op]]]
        if gives_results or not uneven.isdisjoint(around):
            found.add(op)
    return sorted(found)


def _uneven_values(read: ShardedFunction, values: PaddedValues) -> set[int]:
    """The numbers of the values whose shards are not even."""
    arrays, numbers = read.arrays, read.numbers
    known: dict[tuple[int, Any], bool] = {}

    def is_uneven(sharding: int, type_: Any) -> bool:
        key = (sharding, type_)
        if key not in known:
            own = read.shardings[sharding]
            known[key] = isinstance(type_, ir.RankedTensorType) and values.even_shape(type_.shape, own) != tuple(
                type_.shape
            )
        return known[key]

    types = [[result.type for result in op.results] for op in read.representatives]
    found = set()
    for op, signature in enumerate(arrays.signatures):
        for value, type_ in zip(arrays.results(op), types[signature], strict=True):
            if numbers[value] != UNSHARDED and is_uneven(numbers[value], type_):
                found.add(value)
    for value, definer in enumerate(arrays.definers):
        if definer < 0 and numbers[value] != UNSHARDED and is_uneven(numbers[value], arrays.value(value).type):
            found.add(value)
    return found
