# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of the ops of tensor that cut a slice, write one, or pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _dims_of_slice(sizes: Sequence[int], shape: Sequence[int]) -> list[int | None]:
    """For each dimension of a slice the one of a tensor of `shape` that may leave out dimensions of size 1."""
    found: list[int | None] = []
    dim = 0
    for size in sizes:
        kept = dim < len(shape) and shape[dim] == size
        found.append(dim if kept else None)
        dim += kept
    return found


@sharding_rule("tensor.extract_slice")
def extract_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, neighbours can exchange elements, if it is known where the slice is.

    If it is not, and where a dimension is left out, it has to be whole.
    """
    sizes = list(op.attributes["static_sizes"])
    known = [
        _DYNAMIC not in pair
        for pair in zip(op.attributes["static_offsets"], op.attributes["static_strides"], strict=True)
    ]
    shape, result = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    further = [None] * (len(op.operands) - 1)
    builder = RuleBuilder.for_op(op)
    for dim, (size, result_dim) in enumerate(zip(shape, _dims_of_slice(sizes, result), strict=True)):
        changed = FactorType.PERMUTATION if known[dim] and result_dim is not None else FactorType.NEED_REPLICATION
        type_ = FactorType.PASS_THROUGH if sizes[dim] == size else changed
        blocked = type_ is FactorType.NEED_REPLICATION or (options.conservative and type_ is FactorType.PERMUTATION)
        builder.add_factor([dim, *further], [result_dim], size, type_, blocked=blocked)
    return builder.build()


@sharding_rule("tensor.insert_slice")
def insert_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Every device writes into its own block what falls there of the slice.

    Along a dimension where the slice is smaller, it has to be whole unless it is known where it goes.
    """
    sizes = list(op.attributes["static_sizes"])
    known = [
        _DYNAMIC not in pair
        for pair in zip(op.attributes["static_offsets"], op.attributes["static_strides"], strict=True)
    ]
    source, shape = (shape_of(operand.type) for operand in list(op.operands)[:2])
    further = [None] * (len(op.operands) - 2)
    builder = RuleBuilder.for_op(op)
    for dim, (size, source_dim) in enumerate(zip(shape, _dims_of_slice(sizes, source), strict=True)):
        if sizes[dim] == size:
            builder.add_factor([source_dim, dim, *further], [dim], size)
            continue
        builder.add_factor([None, dim, *further], [dim], size)
        if source_dim is not None:
            type_ = FactorType.PASS_THROUGH if known[dim] else FactorType.NEED_REPLICATION
            builder.add_factor([source_dim, None, *further], [None], source[source_dim], type_)
    return builder.build()


@sharding_rule("tensor.pad")
def pad(op: Any, options: RuleOptions) -> OpShardingRule:
    """Where the size changes, elements move by what is padded, so neighbours can exchange them."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op)
    return builder.add_resized(before, after, FactorType.PERMUTATION, blocked=options.conservative).build()
