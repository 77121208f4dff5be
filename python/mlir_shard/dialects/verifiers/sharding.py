# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings on operations: valid for their values' types, on a mesh of the module, free of enclosing manual axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects.data_flow import sharding_before_barriers
from mlir_shard.dialects.verifiers.attributes import required
from mlir_shard.dialects.verifiers.symbols import bound_manual_axes, find_mesh, mesh_lookup
from mlir_shard.dialects.verifiers.types import shape_of
from mlir_shard.dialects.verifiers.violation import require
from mlir_shard.sharding import ReductionOp, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.verify import (
    check_tensor_sharding,
    check_tensor_sharding_per_value,
    check_unreduced_transition,
    common_mesh,
)


def check_sharding(sharding: TensorSharding, type_: Any, op: Any) -> None:
    """A sharding on `op` of a value of type `type_` keeps all that a tensor's sharding has to keep."""
    shape = shape_of(type_)
    require(check_tensor_sharding(sharding, find_mesh(sharding, op), shape, manual_axes=bound_manual_axes(op)))


def check_shardings(shardings: TensorShardingPerValue, types: Sequence[Any], op: Any, kind: str) -> None:
    """One valid sharding on `op` for each value; `kind` says what the values are."""
    shapes = [shape_of(type_) for type_ in types]
    require(
        check_tensor_sharding_per_value(
            shardings, mesh_lookup(op), shapes, kind=kind, manual_axes=bound_manual_axes(op)
        )
    )


def check_sharding_attribute(op: Any) -> None:
    """The attribute `sharding` is there and fits the result."""
    check_sharding(required(op, "sharding", TensorSharding), op.results[0].type, op)


def check_becomes_sharding(op: Any) -> None:
    """From the operand's sharding to the attribute `sharding`, what is unreduced is reduced or stays as it was.

    Only sums become unreduced, since zeros on the other devices make a sum of one value, and no maximum.
    """
    source = op.operands[0]
    before = sharding_before_barriers(source)
    # A wrong sharding is reported where it is attached.
    if before is None or check_tensor_sharding(before, find_mesh(before, op), shape_of(source.type)) is not None:
        return
    after = required(op, "sharding", TensorSharding)
    mesh = common_mesh((find_mesh(before, op), find_mesh(after, op)))
    require(
        check_unreduced_transition((before,), (after,), mesh, introduced=ReductionOp.SUM, removed=before.reduction_op)
    )
