# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA's ops that read and write rows by their indices."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.index_arithmetic import constant, multiply, to_integer
from mlir_shard.rules.builder import RuleBuilder, shape_of, without_ones
from mlir_shard.rules.partition import Blocks, continue_with, partition_rule, set_result_types
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_arith, _tensor = host.dialect("arith"), host.dialect("tensor")


@sharding_rule("tosa.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a gather of values (n, k, c) at indices (n, w).

    Rows k are a reduction: each device finds the elements in its rows.
    """
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0], [0], batch)
        .add_factor([None, 1], [1], shape_of(op.operands[1].type)[1])
        .add_factor([2, None], [2], channels)
        .add_factor([1, None], [None], rows, FactorType.REDUCTION if rows > 1 else FactorType.NEED_REPLICATION)
        .build()
    )


@partition_rule("tosa.gather", pure=True)
def partition_gather(op: Any, blocks: Blocks) -> None:
    """Makes a gather local: the same gather from a shard, with zeros for rows that are in other shards."""
    set_result_types(op, blocks)
    axes = blocks.reduction_axes
    if not axes:
        return
    blocks.check_known()
    values, result = blocks.operands[0], op.results[0]
    rows = values.block_shape[1]
    with ir.InsertionPoint(op), op.location:
        indices = op.operands[1]
        start = to_integer(multiply(blocks.device_index(axes), constant(rows)), indices.type.element_type.width)
        local = _arith.SubIOp(indices, _tensor.SplatOp(indices.type, start, []).result).result
        end = _splat(indices.type, rows)
        # As an unsigned number, an index before the shard is beyond its end.
        is_own = _arith.CmpIOp(_arith.CmpIPredicate.ult, local, end).result
        op.operands[1] = _arith.SelectOp(is_own, local, shard.zeros(indices.type)).result

    def own() -> Any:
        boolean = is_own.type
        shape = [*boolean.shape, 1]
        wide = ir.RankedTensorType.get(shape, boolean.element_type)
        mask = _tensor.ExpandShapeOp(wide, is_own, [[0], [1, 2]], [], shape).result
        zero = shard.zeros(ir.RankedTensorType.get([1, 1, 1], result.type.element_type))
        return ir.Operation.create("tosa.select", [result.type], [mask, result, zero]).result

    continue_with(op, 0, own)


def _splat(type_: Any, value: int) -> Any:
    number = ir.IntegerAttr.get(type_.element_type, value)
    return _arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, number)).result


@sharding_rule("tosa.scatter")
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a scatter into values (n, k, c) at indices (n, w): rows k must be replicated."""
    batch, rows, channels = shape_of(op.operands[0].type)
    return (
        RuleBuilder.for_op(op)
        .add_factor([0, 0, 0], [0], batch)
        .add_factor([2, None, 2], [2], channels)
        .add_factor([1, None, None], [1], rows, FactorType.NEED_REPLICATION)
        .add_factor([None, 1, 1], [None], shape_of(op.operands[1].type)[1], FactorType.NEED_REPLICATION)
        .build()
    )


@sharding_rule("tosa.row_gather", "tosa.row_gather_block_scaled")
def row_gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a gather of several rows per index: rows are replicated, scales go with blocks of data."""
    tensors = len(op.results)
    batch, rows, channels = shape_of(op.operands[0].type)
    indices = shape_of(op.operands[tensors].type)[1]
    scales = shape_of(op.operands[tensors - 1].type)[2]
    of_indices = [None] * tensors
    rule = (
        RuleBuilder.for_op(op)
        .add_factor([*[0] * tensors, 0, None], [0] * tensors, batch)
        .add_factor([*of_indices, 1, None], [1] * tensors, indices)
        .add_factor([*of_indices, None, None], [1] * tensors, shape_of(op.results[0].type)[1] // max(indices, 1))
        .add_factor([*[2] * tensors, None, None], [2] * tensors, scales)
        .add_factor(
            [2, *[None] * (tensors + 1)],
            [2, *[None] * (tensors - 1)],
            channels // max(scales, 1),
            FactorType.NEED_REPLICATION,
        )
        .add_factor([*[1] * tensors, None, None], of_indices, rows, FactorType.NEED_REPLICATION)
        .build()
    )
    return without_ones(rule)


# An index outside of the tensor may be one past the last row.
partition_rule("tosa.row_gather", "tosa.row_gather_block_scaled", "tosa.scatter", pure=True)(set_result_types)
