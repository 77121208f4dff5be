# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch normalization and its gradient in the operations that define them."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import stablehlo


def inference(op: Any) -> list[Any]:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset"""
    operand, scale, offset, mean, variance = op.operands
    feature = _Feature(op)
    return [feature.normalized(operand, scale, offset, mean, variance)]


def training(op: Any) -> list[Any]:
    """The same with mean and variance of the operand, which are results too."""
    operand, scale, offset = op.operands
    feature = _Feature(op)
    mean = feature.mean(operand)
    centred = _binary("subtract", operand, feature.spread(mean))
    variance = feature.mean(_binary("multiply", centred, centred))
    return [feature.normalized(operand, scale, offset, mean, variance), mean, variance]


def gradient(op: Any) -> list[Any]:
    """Of the operand, the scale and the offset."""
    operand, scale, mean, variance, arriving = op.operands
    feature = _Feature(op)
    centred = _binary("subtract", operand, feature.spread(mean))
    inverse = feature.inverse_deviation(variance)
    along = feature.sum(_binary("multiply", arriving, centred))
    of_scale = _binary("multiply", along, inverse)
    of_offset = feature.sum(arriving)
    count = stablehlo.splat(scale.type, feature.count)
    slope = _binary("divide", _binary("multiply", along, _binary("multiply", inverse, inverse)), count)
    rest = _binary("subtract", arriving, feature.spread(_binary("divide", of_offset, count)))
    rest = _binary("subtract", rest, _binary("multiply", centred, feature.spread(slope)))
    return [_binary("multiply", rest, feature.spread(_binary("multiply", scale, inverse))), of_scale, of_offset]


class _Feature:
    """The dimension of features of an operation, along which its statistics lie."""

    def __init__(self, op: Any) -> None:
        self._dim = op.attributes["feature_index"].value
        self._epsilon = op.attributes["epsilon"].value
        self._shape = list(op.operands[0].type.shape)
        self.count = 1
        for dim, size in enumerate(self._shape):
            self.count *= 1 if dim == self._dim else size

    def spread(self, statistic: Any) -> Any:
        """A number for each feature in the shape of the operand."""
        return stablehlo.broadcast(statistic, self._shape, [self._dim])

    def sum(self, value: Any) -> Any:
        """The sum for each feature."""
        type_ = stablehlo.with_shape(value.type, [self._shape[self._dim]])
        zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
        dims = stablehlo.sizes([dim for dim in range(len(self._shape)) if dim != self._dim])
        return stablehlo.combining("reduce", type_, [value, zero], "add", dimensions=dims)

    def mean(self, value: Any) -> Any:
        """The mean for each feature."""
        total = self.sum(value)
        return _binary("divide", total, stablehlo.splat(total.type, self.count))

    def inverse_deviation(self, variance: Any) -> Any:
        """1 / sqrt(variance + epsilon)"""
        shifted = _binary("add", variance, stablehlo.splat(variance.type, self._epsilon))
        return stablehlo.build("rsqrt", shifted.type, shifted)

    def normalized(self, operand: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        """The operand with mean `offset` and deviation `scale`."""
        centred = _binary("subtract", operand, self.spread(mean))
        factor = _binary("multiply", scale, self.inverse_deviation(variance))
        return _binary("add", _binary("multiply", centred, self.spread(factor)), self.spread(offset))


def _binary(name: str, left: Any, right: Any) -> Any:
    return stablehlo.build(name, left.type, left, right)
