# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations of StableHLO that the host does not lower: entry, control flow and batch normalization.

Matrix decompositions are in `linear_algebra`, loops over elements in `element_loops` and `sorting`, products in
`contractions`, and other operations that are rewritten only for some element types in `by_element_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import shard, stablehlo
from mlir_shard.ir.editing import operations_named_in_post_order, replace_with
from mlir_shard.ir.stablehlo import binary
from mlir_shard.runtime.lowering.stablehlo import by_element_type, contractions, element_loops, linear_algebra, sorting

_arith = host.dialect("arith")
_scf = host.dialect("scf")
_EQUAL = 0


def while_(op: Any) -> list[Any]:
    """Rewrites to `scf.while`: the condition becomes its `before` region, the body its `after` region."""
    made = ir.Operation.create("scf.while", _types(op), list(op.operands), regions=2)
    for region, new in zip(op.regions, made.regions, strict=True):
        region.blocks[0].append_to(new)
    condition, body = (region.blocks[0] for region in made.regions)
    end = _end(condition)
    with ir.InsertionPoint(end), end.location:
        _scf.ConditionOp(element_loops.unboxed(end.operands[0]), list(condition.arguments))
    end.erase()
    _yield(body)
    return list(made.results)


def if_(op: Any) -> list[Any]:
    """Rewrites to `scf.if`: the first region is taken if the operand is true."""
    return _choose(element_loops.unboxed(op.operands[0]), _types(op), *(region.blocks[0] for region in op.regions))


def case(op: Any) -> list[Any]:
    """Rewrites to nested `scf.if`: the operand selects the region; the last one is taken if it is out of range."""
    if len(op.regions) == 1:
        return element_loops.inlined(op.regions[0], [])
    return _case(element_loops.unboxed(op.operands[0]), 0, [region.blocks[0] for region in op.regions], _types(op))


def _case(number: Any, first: int, blocks: Sequence[Any], types: Sequence[Any]) -> list[Any]:
    """Builds the choice among two or more blocks, the first of which has the number `first`."""
    is_first = _arith.CmpIOp(_EQUAL, number, _arith.ConstantOp(number.type, first).result).result
    if len(blocks) == 2:
        return _choose(is_first, types, *blocks)
    made = _if(is_first, types)
    _move(blocks[0], made.regions[0])
    with ir.InsertionPoint(made.regions[1].blocks.append()):
        _scf.YieldOp(_case(number, first + 1, blocks[1:], types))
    return list(made.results)


def concatenate(op: Any) -> list[Any]:
    """Inserts the operands into the result one by one; the host's lowering would select one for each element."""
    dim, result = op.attributes["dimension"].value, op.results[0].type
    joined, start = element_loops.empty(result), 0
    for operand in op.operands:
        joined = shard.insert_slice(operand, joined, [start if place == dim else 0 for place in range(result.rank)])
        start += operand.type.shape[dim]
    return [joined]


def dimension_size(op: Any) -> list[Any]:
    """Rewrites to a constant: shapes are static."""
    return [stablehlo.splat(op.results[0].type, op.operands[0].type.shape[op.attributes["dimension"].value])]


def barrier(op: Any) -> list[Any]:
    """Drops a barrier: no later pass moves operations across it in a harmful way."""
    return list(op.operands)


def _choose(condition: Any, types: Sequence[Any], then: Any, otherwise: Any) -> list[Any]:
    made = _if(condition, types)
    _move(then, made.regions[0])
    _move(otherwise, made.regions[1])
    return list(made.results)


def _if(condition: Any, types: Sequence[Any]) -> Any:
    return ir.Operation.create("scf.if", list(types), [condition], regions=2)


def _move(block: Any, region: Any) -> None:
    block.append_to(region)
    _yield(region.blocks[0])


def _yield(block: Any) -> None:
    end = _end(block)
    with ir.InsertionPoint(end), end.location:
        _scf.YieldOp(list(end.operands))
    end.erase()


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _types(op: Any) -> list[Any]:
    return [result.type for result in op.results]


def is_along_nothing(op: Any) -> bool:
    """Returns whether a `stablehlo.reduce` only combines each element with the initial value."""
    return not len(op.attributes["dimensions"])


def along_nothing(op: Any) -> list[Any]:
    """Rewrites such a reduction to one along a new dimension of size 1; moves its region."""
    inputs = list(op.operands)[: len(op.results)]
    rank = inputs[0].type.rank
    expanded = [
        ir.Operation.create("stablehlo.reshape", [_with_a_dimension(one.type)], [one]).results[0] for one in inputs
    ]
    operands = [*expanded, *list(op.operands)[len(inputs) :]]
    attributes = {"dimensions": ir.DenseI64ArrayAttr.get([rank])}
    types = [result.type for result in op.results]
    made = ir.Operation.create("stablehlo.reduce", types, operands, attributes, regions=1)
    op.regions[0].blocks[0].append_to(made.regions[0])
    return list(made.results)


def _with_a_dimension(type_: Any) -> Any:
    return ir.RankedTensorType.get([*type_.shape, 1], type_.element_type)


def inference(op: Any) -> list[Any]:
    """Returns (x - mean) / sqrt(variance + epsilon) * scale + offset."""
    operand, scale, offset, mean, variance = op.operands
    feature = _Feature(op)
    return [feature.normalized(operand, scale, offset, mean, variance)]


def training(op: Any) -> list[Any]:
    """Returns the same with the mean and the variance of the operand, and these as further results."""
    operand, scale, offset = op.operands
    feature = _Feature(op)
    mean = feature.mean(operand)
    centred = binary("subtract", operand, feature.spread(mean))
    variance = feature.mean(binary("multiply", centred, centred))
    return [feature.normalized(operand, scale, offset, mean, variance), mean, variance]


def gradient(op: Any) -> list[Any]:
    """Returns the gradients of the operand, the scale and the offset."""
    operand, scale, mean, variance, arriving = op.operands
    feature = _Feature(op)
    centred = binary("subtract", operand, feature.spread(mean))
    inverse = feature.inverse_deviation(variance)
    along = feature.sum(binary("multiply", arriving, centred))
    of_scale = binary("multiply", along, inverse)
    of_offset = feature.sum(arriving)
    count = stablehlo.splat(scale.type, feature.count)
    slope = binary("divide", binary("multiply", along, binary("multiply", inverse, inverse)), count)
    rest = binary("subtract", arriving, feature.spread(binary("divide", of_offset, count)))
    rest = binary("subtract", rest, binary("multiply", centred, feature.spread(slope)))
    return [
        binary("multiply", rest, feature.spread(binary("multiply", scale, inverse))),
        of_scale,
        of_offset,
    ]


class _Feature:
    """The feature dimension of an operation, along which its statistics vary."""

    def __init__(self, op: Any) -> None:
        self._dim = op.attributes["feature_index"].value
        self._epsilon = op.attributes["epsilon"].value
        self._shape = list(op.operands[0].type.shape)
        self.count = 1
        for dim, size in enumerate(self._shape):
            self.count *= 1 if dim == self._dim else size

    def spread(self, statistic: Any) -> Any:
        """Broadcasts a number for each feature to the shape of the operand."""
        return stablehlo.broadcast(statistic, self._shape, [self._dim])

    def sum(self, value: Any) -> Any:
        """Returns the sum for each feature."""
        type_ = stablehlo.with_shape(value.type, [self._shape[self._dim]])
        zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
        dims = stablehlo.sizes([dim for dim in range(len(self._shape)) if dim != self._dim])
        return stablehlo.combining("reduce", type_, [value, zero], "add", dimensions=dims)

    def mean(self, value: Any) -> Any:
        """Returns the mean for each feature."""
        total = self.sum(value)
        return binary("divide", total, stablehlo.splat(total.type, self.count))

    def inverse_deviation(self, variance: Any) -> Any:
        """Returns 1 / sqrt(variance + epsilon)."""
        shifted = binary("add", variance, stablehlo.splat(variance.type, self._epsilon))
        return stablehlo.build("rsqrt", shifted.type, shifted)

    def normalized(self, operand: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        """Returns the operand, normalized to the mean `offset` and the deviation `scale`."""
        centred = binary("subtract", operand, self.spread(mean))
        factor = binary("multiply", scale, self.inverse_deviation(variance))
        return binary("add", binary("multiply", centred, self.spread(factor)), self.spread(offset))


# Builds the new operations before an operation and returns the values of its results. May move its regions.
_Rewrite = Callable[[Any], list[Any]]
_REWRITES: dict[str, _Rewrite] = {
    "stablehlo.add": by_element_type.disjunction,
    "stablehlo.batch_norm_grad": gradient,
    "stablehlo.batch_norm_inference": inference,
    "stablehlo.batch_norm_training": training,
    "stablehlo.case": case,
    "stablehlo.cholesky": linear_algebra.cholesky,
    "stablehlo.concatenate": concatenate,
    "stablehlo.convolution": contractions.with_wide_operands,
    "stablehlo.dot": contractions.with_wide_operands,
    "stablehlo.dot_general": contractions.dot_general,
    "stablehlo.gather": element_loops.gather,
    "stablehlo.get_dimension_size": dimension_size,
    "stablehlo.if": if_,
    "stablehlo.is_finite": by_element_type.in_f32,
    "stablehlo.logistic": by_element_type.in_f32,
    "stablehlo.optimization_barrier": barrier,
    "stablehlo.reduce": along_nothing,
    "stablehlo.reduce_window": element_loops.cumulative,
    "stablehlo.scatter": element_loops.scatter,
    "stablehlo.select_and_scatter": element_loops.select_and_scatter,
    "stablehlo.sort": sorting.sort,
    "stablehlo.triangular_solve": linear_algebra.triangular_solve,
    "stablehlo.while": while_,
}
# For operations of which the host lowers some forms: returns whether it does not lower this one.
_FORMS: dict[str, Callable[[Any], bool]] = {
    "stablehlo.add": by_element_type.adds_booleans,
    "stablehlo.convolution": contractions.widens_unsigned,
    "stablehlo.dot": contractions.widens_unsigned,
    "stablehlo.dot_general": contractions.is_not_lowered,
    "stablehlo.gather": element_loops.has_batch_dimensions,
    "stablehlo.is_finite": by_element_type.is_of_narrow_floats,
    "stablehlo.logistic": by_element_type.is_of_narrow_floats,
    "stablehlo.reduce": is_along_nothing,
    "stablehlo.reduce_window": element_loops.is_cumulative,
}


def legalize(module: Any) -> None:
    """Rewrites these operations of a module in place."""
    # Operations in regions come before their parents, whose rewrites move the regions.
    found = operations_named_in_post_order(module, *_REWRITES)
    for op in [op for op in found if op.name not in _FORMS or _FORMS[op.name](op)]:
        with ir.InsertionPoint(op), op.location:
            values = _REWRITES[op.name](op)
        replace_with(op, values)
