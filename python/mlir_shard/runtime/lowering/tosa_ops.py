# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations of TOSA that the host does not lower, or lowers only with constant zero points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir.editing import operations_named, replace_with
from mlir_shard.ir.values import defining_op
from mlir_shard.runtime.lowering.stablehlo.element_loops import empty, nest

_arith, _linalg, _tensor = map(host.dialect, ("arith", "linalg", "tensor"))
_CONSTANT = "tosa.const"
_MATMUL = "tosa.matmul"
_TRANSPOSED_MATMUL = "tosa.matmul_t"
# Operations whose last two operands are zero points.
_WITH_ZERO_POINTS = (
    *(_MATMUL, _TRANSPOSED_MATMUL, "tosa.negate", "tosa.avg_pool2d"),
    *(f"tosa.{name}" for name in ("conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d")),
)


def legalize(module: Any) -> None:
    """Rewrites these operations of a module in place."""
    for op in operations_named(module, *_WITH_ZERO_POINTS):
        with ir.InsertionPoint(op), op.location:
            _make_zero_points_constant(op)
    for name, rewrite in _REWRITES.items():
        for op in operations_named(module, name):
            with ir.InsertionPoint(op), op.location:
                values = rewrite(op)
            if values is not None:
                replace_with(op, values)


def _make_zero_points_constant(op: Any) -> None:
    """Replaces zero points of floats, which must be zero, by constants."""
    for number in (-2, -1):
        value = op.operands[len(op.operands) + number]
        element_type = value.type.element_type
        if not isinstance(element_type, ir.IntegerType) and defining_op(value, _CONSTANT) is None:
            zero = ir.DenseElementsAttr.get_splat(value.type, ir.FloatAttr.get(element_type, 0.0))
            constant = ir.Operation.create(_CONSTANT, [value.type], attributes={"values": zero})
            op.operands[len(op.operands) + number] = constant.result


def _matmul(op: Any) -> Sequence[Any] | None:
    """Rewrites a product whose zero points are not constants to a quantized one; returns None for other products."""
    *matrices, left, right = op.operands
    if all(defining_op(value, _CONSTANT) is not None for value in (left, right)):
        return None
    type_ = op.results[0].type
    points = [_extended(_first(value), type_.element_type) for value in (left, right)]
    zero = _arith.ConstantOp(type_.element_type, 0).result
    start = _linalg.fill(zero, outs=[empty(type_)])
    return [_linalg.quantized_batch_matmul(*matrices, *points, outs=[start])]


def _first(value: Any) -> Any:
    return _tensor.ExtractOp(value, [index.constant(0)] * len(value.type.shape)).result


def _extended(number: Any, type_: Any) -> Any:
    return number if number.type == type_ else _arith.ExtSIOp(type_, number).result


def _transposed_matmul(op: Any) -> Sequence[Any]:
    """Rewrites to a `tosa.matmul` with the second operand transposed."""
    left, right, *points = op.operands
    batch, columns, inner = right.type.shape
    type_ = ir.RankedTensorType.get([batch, inner, columns], right.type.element_type)
    attributes = {"perms": ir.DenseI32ArrayAttr.get([0, 2, 1])}
    transposed = ir.Operation.create("tosa.transpose", [type_], [right], attributes).result
    return [ir.Operation.create(_MATMUL, [op.results[0].type], [left, transposed, *points]).result]


def _scatter(op: Any) -> Sequence[Any]:
    """Writes rows of the third operand to the rows with the indices in the second."""
    before, rows, updates = op.operands

    def write(position: list[Any], carried: list[Any]) -> list[Any]:
        batch, number, channel = position
        row = index.of_integer(_tensor.ExtractOp(rows, [batch, number]).result)
        element = _tensor.ExtractOp(updates, position).result
        return [_tensor.InsertOp(element, carried[0], [batch, row, channel]).result]

    return nest(updates.type.shape, [before], write)


# The order matters: some rewrites build operations that later ones rewrite.
_REWRITES: dict[str, Callable[[Any], Sequence[Any] | None]] = {
    _TRANSPOSED_MATMUL: _transposed_matmul,
    _MATMUL: _matmul,
    "tosa.scatter": _scatter,
}
