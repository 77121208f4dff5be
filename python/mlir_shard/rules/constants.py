# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops make constant tensors, and which make constant tensors of constant ones, by op name.

The uses of a constant say nothing about each other, so each may have a copy of what makes it. What is elementwise
makes constants of constants too. A dialect registers its other ops here.
"""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.elementwise import is_elementwise

_constant: set[str] = set()
_constant_op: set[str] = set()
_constant_of_constants: set[str] = set()
_scalar_expansion: set[str] = set()


def register_constant(*names: str) -> None:
    """Says of ops that their results are constant."""
    _constant.update(names)


def register_constant_op(*names: str) -> None:
    """Says of ops that they hold the value of their result in an attribute; of equal ones, one is enough."""
    _constant_op.update(names)
    register_constant(*names)


def register_constant_of_constants(*names: str) -> None:
    """Says of ops that their results are constant where their operands are."""
    _constant_of_constants.update(names)


def register_scalar_expansion(*names: str) -> None:
    """Says of ops that they repeat a scalar, so that it costs as little as a constant to make their result twice."""
    _scalar_expansion.update(names)
    register_constant_of_constants(*names)


def is_constant(name: str) -> bool:
    """Whether ops of this name have constant results."""
    return name in _constant


def is_constant_op(name: str) -> bool:
    """Whether ops of this name hold their value in an attribute, as MLIR's trait ConstantLike says of ops."""
    return name in _constant_op


def constant_ops() -> frozenset[str]:
    """The names of the ops of which `is_constant_op` holds."""
    return frozenset(_constant_op)


def is_constant_of_constants(op: Any) -> bool:
    """Whether the results of an op are constant where its operands are; name and types decide."""
    name: str = op.name
    # A constraint is what a use asks for, so it is not made again with what is constrained.
    if name == "sdy.sharding_constraint":
        return False
    if name == "stablehlo.bitcast_convert":
        return shape_of(op.operands[0].type) == shape_of(op.results[0].type)
    return name in _constant_of_constants or name.startswith("chlo.broadcast_") or is_elementwise(name)


def is_scalar_expansion(name: str) -> bool:
    """Whether ops of this name repeat a scalar where their operand is one."""
    return name in _scalar_expansion


register_constant_op(
    "arith.constant",
    "complex.constant",
    "sdy.constant",
    "stablehlo.constant",
    "tosa.const",
    "tosa.const_shape",
)
register_constant("stablehlo.iota")
# Of what no tensor that shards is made of, equal ones are merged and none is split.
_constant_op.update(
    (
        "chlo.constant",
        "func.constant",
        "index.bool.constant",
        "index.constant",
        "shape.const_shape",
        "shape.const_size",
    )
)
register_constant_of_constants(
    "sdy.propagation_barrier",
    "sdy.reshard",
    "stablehlo.reshape",
    "stablehlo.slice",
    "tensor.collapse_shape",
    "tensor.empty",
    "tensor.expand_shape",
    "tensor.extract_slice",
    "tosa.reshape",
    "tosa.slice",
    "tosa.tile",
)
register_scalar_expansion("linalg.fill", "stablehlo.broadcast_in_dim", "tensor.splat")
