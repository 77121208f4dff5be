# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of tensor: reshapes and ops that put tensors together; which ops have none, and why."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import RuleBuilder, rank_of, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.rules.stablehlo.reshape import reshape as reshape_factors
from mlir_shard.rules.without_rule import without_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

register_elementwise("tensor.bitcast", "tensor.cast")
without_rule("tensor.empty", "tensor.splat", because="no operand is a tensor: its users decide")
without_rule("tensor.from_elements", "tensor.generate", because="no operand is a tensor: its users decide")
without_rule("tensor.extract", because="its result is one element, which has no dimension to shard")
without_rule("tensor.dim", "tensor.rank", because="its result is a size, which has no dimension to shard")
without_rule("tensor.parallel_insert_slice", because="it has no result: it stands in the terminator of a loop")
without_rule("tensor.yield", because="it is a terminator")


@sharding_rule("tensor.collapse_shape", "tensor.expand_shape")
def reassociate(op: Any, options: RuleOptions) -> OpShardingRule:
    """A dimension of the smaller rank is made of those it is expanded to, major to minor."""
    expands = op.name == "tensor.expand_shape"
    expanded = shape_of((op.results if expands else op.operands)[0].type)
    further = [None] * (len(op.operands) - 1)
    builder = RuleBuilder.for_op(op)
    for whole, parts in enumerate(op.attributes["reassociation"]):
        for part in parts:
            operand_dim, result_dim = (whole, part.value) if expands else (part.value, whole)
            builder.add_factor([operand_dim, *further], [result_dim], expanded[part.value])
    return without_ones(builder.build())


def reshape_beside_whole(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """The factors of a reshape of the first operand; any other operand, a tensor of sizes say, has to be whole."""
    of_tensors = reshape_factors(op, options)
    if of_tensors is None:
        return None
    builder = RuleBuilder.for_op(op)
    further = [None] * (len(op.operands) - 1)
    operand, result = of_tensors.operand_mappings[0], of_tensors.result_mappings[0]
    for factor, size in enumerate(of_tensors.factor_sizes):
        dims = (
            next((dim for dim, of in enumerate(mapping.dim_mappings) if factor in of.factor_indices), None)
            for mapping in (operand, result)
        )
        operand_dim, result_dim = dims
        builder.add_factor([operand_dim, *further], [result_dim], size)
    for number, value in enumerate(list(op.operands)[1:], start=1):
        for dim, size in enumerate(shape_of(value.type)):
            own = [dim if other == number else None for other in range(len(op.operands))]
            builder.add_factor(own, [None], size, FactorType.NEED_REPLICATION)
    return builder.build()


sharding_rule("tensor.reshape")(reshape_beside_whole)


def join(op: Any, joined: int, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the one that is joined, which has to be whole."""
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim != joined:
            builder.add_common_factor(dim, size)
        elif not options.conservative:
            builder.add_common_factor(dim, size, FactorType.NEED_REPLICATION)
    return builder.build()


@sharding_rule("tensor.concat")
def concat(op: Any, options: RuleOptions) -> OpShardingRule:
    """All dimensions go through but the concatenated one, which has to be whole."""
    return join(op, op.attributes["dim"].value, options)


@sharding_rule("tensor.insert")
def insert(op: Any, options: RuleOptions) -> OpShardingRule:
    """Every device sets the element where its block holds it."""
    operands = [None, 0, *[None] * (len(op.operands) - 2)]
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        builder.add_factor([dim if operand == 0 else None for operand in operands], [dim], size)
    return builder.build()


@sharding_rule("tensor.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Indices are gathered each by itself; a dimension that is indexed has to be whole."""
    return _indexed(op, list(op.attributes["gather_dims"]), FactorType.PASS_THROUGH)


@sharding_rule("tensor.scatter")
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """All updates go to every block, so their batches have to be whole, as has a dimension that is indexed."""
    return _indexed(op, list(op.attributes["scatter_dims"]), FactorType.NEED_REPLICATION)


def _indexed(op: Any, indexed: list[int], of_batch: FactorType) -> OpShardingRule:
    """Relates a tensor, indices into it, and slices: their leading dimensions are those of the indices but the last.

    The operands of a gather are (tensor, indices) with the slices as result, those of a scatter
    (slices, tensor, indices) with the updated tensor as result.
    """
    gathers = op.name == "tensor.gather"
    tensor, indices, slices = (
        (op.operands[0], op.operands[1], op.results[0]) if gathers else (op.operands[1], op.operands[2], op.operands[0])
    )
    builder = RuleBuilder.for_op(op)

    def add(tensor_dim: int | None, indices_dim: int | None, slices_dim: int | None, size: int, type_: Any) -> None:
        if gathers:
            builder.add_factor([tensor_dim, indices_dim], [slices_dim], size, type_)
        else:
            builder.add_factor([slices_dim, tensor_dim, indices_dim], [tensor_dim], size, type_)

    shape, index_shape = shape_of(tensor.type), shape_of(indices.type)
    batch_rank = len(index_shape) - 1
    for dim, size in enumerate(index_shape[:-1]):
        add(None, dim, dim, size, of_batch)
    keeps_indexed = rank_of(slices.type) == batch_rank + len(shape)
    slices_dim = batch_rank
    for dim, size in enumerate(shape):
        if dim in indexed:
            add(dim, None, None, size, FactorType.NEED_REPLICATION)
            slices_dim += keeps_indexed
        else:
            add(dim, None, slices_dim, size, FactorType.PASS_THROUGH)
            slices_dim += 1
    add(None, batch_rank, None, index_shape[-1], FactorType.NEED_REPLICATION)
    return builder.build()
