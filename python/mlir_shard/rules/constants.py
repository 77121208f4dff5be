# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of ops that make constant tensors, and of ops that make constant tensors from constant operands.

The uses of a constant are unrelated, so each may have its own copy of the op that makes the constant. Elementwise ops
make constants from constants too.
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
# The ops of the last two lines make no tensor that is sharded: equal ones are merged, and never split.
CONSTANT_OPS = {
    *(CONSTANTS - {"stablehlo.iota"}),
    *("chlo.constant", "func.constant", "index.bool.constant", "index.constant"),
    *("shape.const_shape", "shape.const_size"),
}
"""Ops that hold the value of their result in an attribute, as with MLIR's trait ConstantLike: equal ones can be
merged."""
SCALAR_EXPANSIONS = {"linalg.fill", "stablehlo.broadcast_in_dim", "tensor.splat"}
"""Ops that repeat a scalar, so that making their result twice is as cheap as for a constant."""
CONSTANTS_OF_CONSTANTS = {
    *SCALAR_EXPANSIONS,
    *op_names("sdy", "propagation_barrier reshard"),
    *op_names("stablehlo", "reshape slice"),
    *op_names("tensor", "collapse_shape empty expand_shape extract_slice"),
    *op_names("tosa", "reshape slice tile"),
}
"""Ops whose results are constant if their operands are."""


def is_constant_of_constants(op: Any) -> bool:
    """Returns whether the results of an op are constant if its operands are; depends on its name and types."""
    name: str = op.name
    # A constraint belongs to one use, so it is not copied with the constrained value.
    if name == "sdy.sharding_constraint":
        return False
    if name == "stablehlo.bitcast_convert":
        return shape_of(op.operands[0].type) == shape_of(op.results[0].type)
    return name in CONSTANTS_OF_CONSTANTS or name.startswith("chlo.broadcast_") or is_elementwise(name)
