# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of unreduced axes from an op's operands to its results."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.sharding.axis_lists import Axes, any_overlap, axes_difference
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import ReductionOp, TensorSharding


def check_unreduced_transition(
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: Mesh | None,
    *,
    introduced: ReductionOp | None = None,
    removed: ReductionOp | None = None,
) -> str | None:
    """Unreduced axes appear and vanish only where the op lets them, and those that stay keep their reduction.

    `introduced` is the reduction that new unreduced axes have to have, `removed` that of those that vanish, None where
    there may be none. None among the shardings is a value without sharding. Without a common mesh (`mesh` is None)
    nothing can be said, and nothing is.
    """
    if mesh is None:
        return None
    before, after = _unreduced(operands), _unreduced(results)
    return (
        _check_introduced(results, axes_difference(after, before, mesh), introduced)
        or _check_removed(operands, axes_difference(before, after, mesh), removed)
        or _check_kept(operands, results)
    )


def _unreduced(shardings: Sequence[TensorSharding | None]) -> Axes:
    return tuple(axis for sharding in shardings if sharding is not None for axis in sharding.unreduced_axes)


def _check_introduced(results: Sequence[TensorSharding | None], new: Axes, allowed: ReductionOp | None) -> str | None:
    if new and allowed is None:
        return f"axis {new[0]} is unreduced in a result but in no operand, and this op leaves nothing to reduce"
    other = _other_reduction(results, new, allowed)
    if other is not None and allowed is not None:
        return f"axis {new[0]} becomes unreduced by {other.value}, but here it can only be by {allowed.value}"
    return None


def _check_removed(operands: Sequence[TensorSharding | None], gone: Axes, allowed: ReductionOp | None) -> str | None:
    if gone and allowed is None:
        return f"axis {gone[0]} is unreduced in an operand but in no result, and this op does not reduce"
    other = _other_reduction(operands, gone, allowed)
    if other is not None and allowed is not None:
        return f"axis {gone[0]} is unreduced by {other.value}, so {allowed.value} cannot reduce it"
    return None


def _other_reduction(
    shardings: Sequence[TensorSharding | None], axes: Axes, expected: ReductionOp | None
) -> ReductionOp | None:
    for sharding in shardings:
        if (
            sharding is not None
            and sharding.reduction_op is not expected
            and any_overlap(sharding.unreduced_axes, axes)
        ):
            return sharding.reduction_op
    return None


def _check_kept(operands: Sequence[TensorSharding | None], results: Sequence[TensorSharding | None]) -> str | None:
    for result in results:
        for operand in operands:
            if operand is None or result is None or operand.reduction_op is result.reduction_op:
                continue
            for axis in result.unreduced_axes:
                if any_overlap((axis,), operand.unreduced_axes):
                    was, now = operand.reduction_op.value, result.reduction_op.value
                    return f"axis {axis} stays unreduced, so its reduction stays {was} and cannot become {now}"
    return None
