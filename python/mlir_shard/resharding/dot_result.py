# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A dot whose operands agree, but not with its result: the result is resharded after it instead of before.

Where the result wants the axes of the contracted dimensions in a dimension that an operand shards otherwise, the dot
can be sharded as its operands are, and reduced; then the smaller tensor is resharded. The idea is Shardy's.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.axes import Axes, any_overlap
from mlir_shard.sharding.projection import ShardingProjection


def dot_with_result_of_operands(
    projection: ShardingProjection, rule: OpShardingRule, tensor_sizes: Sequence[int]
) -> ShardingProjection:
    """The projection with another sharding of the result, or the same where there is nothing to gain.

    For an op with two operands and one result; `tensor_sizes` are in elements. There is where the operands agree,
    the result disagrees with one of them in one factor, in which that operand is sharded and no smaller than the
    result, and the result has there the axes of the contracted factors, in order.
    """
    lhs, rhs = projection.operands
    result = projection.results[0]
    conflict: tuple[int, Axes] | None = None
    reduced: Axes = ()
    seen: Axes = ()
    for factor in range(rule.num_factors):
        left, right = lhs.factors[factor], rhs.factors[factor]
        of_result = result.factors[factor]
        if left is not None and right is not None:
            if left.axes != right.axes:
                return projection
            size = max(tensor_sizes[:2])
            axes = left.axes
            if factor in rule.reduction_factors:
                reduced += axes
                continue
        elif (one := left or right) is not None:
            size = tensor_sizes[0 if left is not None else 1]
            axes = one.axes
            if any_overlap(axes, seen):
                return projection
            seen += axes
        else:
            continue
        if of_result is None or of_result.axes == axes:
            continue
        if not axes or conflict is not None or tensor_sizes[2] > size:
            return projection
        conflict = (factor, axes)
    if conflict is None:
        return projection
    factor, axes = conflict
    of_result = result.factors[factor]
    if not reduced or of_result is None or of_result.axes != reduced:
        return projection
    return projection.replace_tensor(2, result.update(factor, axes, of_result.overflow_axes))
