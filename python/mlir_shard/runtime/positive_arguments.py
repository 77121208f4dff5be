# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds arguments of a program that must be positive, such as variances, because its results would be NaN otherwise."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.op_names import op_names

_GENERIC = "linalg.generic"
# By op name: the operand that must be positive.
_OF_POSITIVE = {
    **dict.fromkeys(op_names("stablehlo", "sqrt rsqrt log log_plus_one power"), 0),
    **dict.fromkeys(op_names("math", "sqrt rsqrt log log10 log1p log2 powf"), 0),
    **dict.fromkeys(op_names("tosa", "rsqrt log pow"), 0),
    **dict.fromkeys(op_names("linalg", "sqrt rsqrt log"), 0),
    "stablehlo.batch_norm_inference": 4,
    "stablehlo.batch_norm_grad": 3,
}
# Their results are positive if all operands are.
_KEEPING = frozenset(
    (
        *op_names(
            "stablehlo", "add broadcast_in_dim convert divide dynamic_slice maximum minimum multiply reshape slice"
        ),
        *op_names("stablehlo", "concatenate transpose"),
        *op_names("arith", "addf divf extf maximumf maxnumf minimumf mulf truncf"),
        *op_names("tosa", "add cast concat maximum mul reciprocal reshape slice transpose"),
        *op_names("tensor", "collapse_shape expand_shape extract extract_slice from_elements reshape splat"),
        *op_names("linalg", "broadcast transpose"),
    )
)
_PRODUCTS = frozenset({"stablehlo.multiply", "arith.mulf", "tosa.mul"})


def positive_arguments(function: Any) -> frozenset[int]:
    """Returns the numbers of the arguments that must be positive for square roots, logarithms and powers to be defined.

    Arguments that pass through loops or calls are not included.
    """
    block = function.regions[0].blocks[0]
    numbers = {argument: number for number, argument in enumerate(block.arguments)}
    found, seen = set(), set()
    todo = [op.operands[_OF_POSITIVE[op.name]] for op in operations_named(function, *_OF_POSITIVE)]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in numbers:
            found.add(numbers[value])
        else:
            todo += _sources(value)
    return frozenset(found)


def _sources(value: Any) -> list[Any]:
    """Returns the values that must be positive for `value` to be positive."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        nest = owner.owner.operation
        return [nest.operands[ir.BlockArgument(value).arg_number]] if nest.name == _GENERIC else []
    op = owner.operation
    if op.name == _GENERIC:
        block = op.regions[0].blocks[0]
        return [block.operations[len(block.operations) - 1].operands[ir.OpResult(value).result_number]]
    if op.name not in _KEEPING or (op.name in _PRODUCTS and op.operands[0] == op.operands[1]):
        return []
    return [one for one in op.operands if _is_float(one.type)]


def _is_float(type_: Any) -> bool:
    return isinstance(getattr(type_, "element_type", type_), ir.FloatType)
