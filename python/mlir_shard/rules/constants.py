# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops make constant tensors, and which make constant tensors of constant ones, by op name.

The uses of a constant say nothing about each other, so each may have a copy of what makes it. What is elementwise
makes constants of constants too.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.elementwise import is_elementwise

CONSTANTS = {
    *("arith.constant", "complex.constant", "sdy.constant", "stablehlo.constant", "stablehlo.iota"),
    *("tosa.const", "tosa.const_shape"),
}
"""Ops whose results are constant."""
# Of the last ones no tensor that shards is made: equal ones are merged and none is split.
CONSTANT_OPS = {
    *(CONSTANTS - {"stablehlo.iota"}),
    *("chlo.constant", "func.constant", "index.bool.constant", "index.constant"),
    *("shape.const_shape", "shape.const_size"),
}
"""Ops that hold the value of their result in an attribute, as MLIR's trait ConstantLike says: one of equal ones is
enough."""
SCALAR_EXPANSIONS = {"linalg.fill", "stablehlo.broadcast_in_dim", "tensor.splat"}
"""Ops that repeat a scalar, so that it costs as little as a constant to make their result twice."""
CONSTANTS_OF_CONSTANTS = {
    *SCALAR_EXPANSIONS,
    *op_names("sdy", "propagation_barrier reshard"),
    *op_names("stablehlo", "reshape slice"),
    *op_names("tensor", "collapse_shape empty expand_shape extract_slice"),
    *op_names("tosa", "reshape slice tile"),
}
"""Ops whose results are constant where their operands are."""


def is_constant_of_constants(op: Any) -> bool:
    """Whether the results of an op are constant where its operands are; name and types decide."""
    name: str = op.name
    # A constraint is what a use asks for, so it is not made again with what is constrained.
    if name == "sdy.sharding_constraint":
        return False
    if name == "stablehlo.bitcast_convert":
        return shape_of(op.operands[0].type) == shape_of(op.results[0].type)
    return name in CONSTANTS_OF_CONSTANTS or name.startswith("chlo.broadcast_") or is_elementwise(name)
