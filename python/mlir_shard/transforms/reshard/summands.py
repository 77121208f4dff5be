# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partial sums that are added: `shard-sink-reductions` reduces their sum alone, so that each costs its part of that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from mlir_shard.ir.editing import ADDITIONS
from mlir_shard.sharding import OpShardingRule, ReductionOp
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.reshard.op_signatures import Signature
from mlir_shard.transforms.reshard.sharded_function import ShardedFunction

Combiner = Callable[[int, Signature, OpShardingRule], ReductionOp | None]


def summands(
    function: ShardedFunction,
    signatures: Sequence[Signature],
    rules: Mapping[int, OpShardingRule | None],
    combiner: Combiner,
) -> dict[int, int]:
    """Returns, for each op whose result is one of several partial sums that are added, the number of these.

    They are partial along the same axes, and only additions use them, up to the sum of all.
    """
    arrays = function.arrays
    adds = [signature.name in ADDITIONS for signature in signatures]
    found: defaultdict[tuple[int, frozenset[AxisRef]], list[int]] = defaultdict(list)
    for op, rule in rules.items():
        if rule is None or not rule.reduction_factors or len(arrays.results(op)) != 1:
            continue
        axes = _reduced_axes(function, op, rule)
        root = _sum(function, op, adds) if axes else op
        if root != op and combiner(op, signatures[arrays.signatures[op]], rule) is ReductionOp.SUM:
            found[root, axes].append(op)
    return {op: len(ops) for ops in found.values() if len(ops) > 1 for op in ops}


def _sum(function: ShardedFunction, op: int, adds: Sequence[bool]) -> int:
    """Returns the last of the additions that follow an op, each of which alone uses the result of the one before."""
    arrays = function.arrays
    while True:
        (result,) = arrays.results(op)
        users = arrays.users(result)
        if len(users) != 1 or not adds[arrays.signatures[users[0]]] or arrays.parents[users[0]] != arrays.parents[op]:
            return op
        if list(arrays.operands(users[0])).count(result) != 1:
            return op
        op = users[0]


def _reduced_axes(function: ShardedFunction, op: int, rule: OpShardingRule) -> frozenset[AxisRef]:
    """Returns the axes along which operands are sharded in dimensions that the op reduces."""
    found: set[AxisRef] = set()
    for value, mapping in zip(function.arrays.operands(op), rule.operand_mappings, strict=True):
        sharding = function.sharding_of(value)
        if sharding is None:
            continue
        for dim, of_dim in zip(mapping.dim_mappings, sharding.dim_shardings, strict=True):
            if any(factor in rule.reduction_factors for factor in dim.factor_indices):
                found.update(of_dim.axes)
    return frozenset(found)
