# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The check that collectives of sdy reduce partial results before other ops use them."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.rules.partition import is_zero
from mlir_shard.rules.reduction import reduction_kind
from mlir_shard.sharding import Mesh, ReductionOp
from mlir_shard.sharding.axes import Axes, axes_difference
from mlir_shard.transforms.partition.grid_reshards import NoPlan
from mlir_shard.transforms.partition.written_collectives import reduction_kind as collective_kind

_REDUCING = {"sdy.all_reduce": "reduction_axes", "sdy.reduce_scatter": "reduce_scatter_axes"}
# Ops that move elements, and so commute with the reduction.
_MOVING = ("sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute", "stablehlo.slice")


def check_reductions(op: Any, pending: Axes, mesh: Mesh) -> None:
    """Raises NoPlan if partial results along `pending` are used before they are reduced, or reduced otherwise."""
    if not pending:
        return
    kind = reduction_kind(op)
    if kind is None:
        raise NoPlan("its partial results are combined by an op that no sdy collective supports")
    is_partial = any((of := sharding_of(value)) is not None and of.unreduced_axes for value in op.operands)
    for result in op.results:
        _check_reduced(op, result, pending, kind, mesh, is_exact=not is_partial)


def _check_reduced(op: Any, value: Any, pending: Axes, kind: ReductionOp, mesh: Mesh, *, is_exact: bool) -> None:
    declared = sharding_of(value)
    if declared is not None and declared.reduction_op is kind:
        pending = axes_difference(pending, declared.unreduced_axes, mesh)
        is_exact = is_exact and not declared.unreduced_axes
    if not pending:
        return
    text = ", ".join(map(str, pending))
    for use in value.uses:
        user = use.owner.operation
        if _only_moves(user, kind):
            _check_reduced(op, user.results[0], pending, kind, mesh, is_exact=is_exact)
            continue
        if user.name not in _REDUCING:
            raise NoPlan(f"its partial results along {text} are used by '{user.name}' before a reduction")
        reduced = reduced_axes(user)
        if collective_kind(user) is not kind:
            raise NoPlan(f"its partial results require a reduction by {kind.value}, but are reduced by another op")
        left = axes_difference(pending, reduced, mesh)
        if left:
            _check_reduced(op, user.results[0], left, kind, mesh, is_exact=is_exact)
        elif is_exact:
            # Axes of size 1 do not matter.
            others = [axis for axis in axes_difference(reduced, pending, mesh) if axis.size(mesh) > 1]
            if others:
                along = ", ".join(map(str, others))
                raise NoPlan(f"its results are reduced along {along}, but are not partial there")


def _only_moves(user: Any, kind: ReductionOp) -> bool:
    """Returns whether an op may precede the reduction of its operand; reduction must not change a padding value."""
    if user.name == "stablehlo.pad":
        return kind is not ReductionOp.SUM or is_zero(user.operands[1])
    return user.name in _MOVING


def reduced_axes(op: Any) -> Axes:
    """Returns the axes along which a collective reduces partial values over devices, none for any other op."""
    if op.name not in _REDUCING:
        return ()
    value = op.attributes[_REDUCING[op.name]].value.value
    return value if op.name == "sdy.all_reduce" else tuple(axis for one in value for axis in one.value)
