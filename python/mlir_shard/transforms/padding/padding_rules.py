# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding rules: functions, registered by op name, with which an op takes padded operands and makes padded results.

This module has the rules of ops that move tensors unchanged, or make them without operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.registered_function import ask, check_op_names, check_takes
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.passes.registry import PassFailure
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.reduction import SELECTING_OPS
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import DimMapping, FactorType, TensorMapping
from mlir_shard.transforms.named_ops import RESHARDING_OPS
from mlir_shard.transforms.padding.padded_values import PaddedValues, Shape


@dataclass(frozen=True, slots=True)
class UnevenOp:
    """An op with tensors that are padded, or have to be.

    `rule` is its sharding rule and the shapes are those of its operands and results, all without padding; a value that
    is not a ranked tensor has the shape ().
    """

    op: Any
    rule: OpShardingRule | None
    operand_shapes: tuple[Shape, ...]
    result_shapes: tuple[Shape, ...]
    values: PaddedValues

    def even_result_shapes(self) -> list[Shape]:
        """Returns the shapes of the results with which their shards are even."""
        shardings = map(sharding_of, self.op.results)
        pairs = zip(self.result_shapes, shardings, strict=True)
        return [self.values.even_shape(shape, sharding) if shape else () for shape, sharding in pairs]

    def set_operands(self, shapes: Sequence[Shape]) -> None:
        """Replaces the operands of the op by the same tensors with other sizes."""
        for index, shape in enumerate(shapes):
            operand = self.op.operands[index]
            if shape and tuple(operand.type.shape) != tuple(shape):
                self._check_whole(index, shape)
                self.op.operands[index] = self.values.resized(operand, shape)

    def set_results(self, shapes: Sequence[Shape]) -> None:
        """Sets the sizes of the results that the op makes, and gives their users values that fit the shardings."""
        for result, own, shape in zip(self.op.results, self.result_shapes, shapes, strict=True):
            if shape:
                self.values.set_shape(result, shape, own)
                self.values.finish(result)

    def _selects_all(self) -> bool:
        """Returns whether the op selects elements, and no collective sums the elements that devices have selected."""
        users = (use.owner.operation.name for result in self.op.results for use in result.uses)
        return self.op.name in SELECTING_OPS and not any(name in _REDUCING for name in users)

    def _check_whole(self, index: int, shape: Shape) -> None:
        """Raises PassFailure if the op reduces a dimension in uneven shards that cannot be padded."""
        if self.rule is None or self._selects_all():
            return
        have = self.op.operands[index].type.shape
        for dim, mapping in enumerate(self.rule.operand_mappings[index].dim_mappings):
            is_reduced = any(self.rule.factor_type(one) is FactorType.REDUCTION for one in mapping.factor_indices[:1])
            if is_reduced and shape[dim] < have[dim]:
                raise PassFailure(
                    f"'{self.op.name}' op reduces dimension {dim} of operand {index}, which has uneven shards and "
                    "no known padding value: its sizes must be divisible by the number of shards",
                    self.op,
                )


_REDUCING = frozenset(("sdy.all_reduce", "sdy.reduce_scatter"))
PadFunction = Callable[[UnevenOp], None]
_ROLE = "padding"
_by_name: dict[str, PadFunction] = {}


def padding_of(*names: str) -> Callable[[PadFunction], PadFunction]:
    """Registers a function that pads ops of these names, or all ops of a dialect (`"attn.*"`).

    The function gets an `UnevenOp`, at an insertion point before the op, and changes the op in place, for example by
    `pad_along_factors`.
    """
    check_op_names(names)

    def register(function: PadFunction) -> PadFunction:
        check_takes(_ROLE, function, "uneven")
        _by_name.update(dict.fromkeys(names, function))
        return function

    return register


def pad(uneven: UnevenOp) -> None:
    """Pads an op by its function; raises InterfaceError if that is a user's function and fails."""
    name = uneven.op.name
    function = _by_name.get(name) or _by_name.get(f"{name.partition('.')[0]}.*")
    if function is None:
        function = pad_along_factors if _passes_factors(uneven) else pad_nothing
    if function.__module__.startswith("mlir_shard."):
        function(uneven)
    else:
        ask(_ROLE, lambda op: function(uneven), uneven.op)


def _passes_factors(uneven: UnevenOp) -> bool:
    rule, name = uneven.rule, uneven.op.name
    return rule is not None and (
        rule.is_custom_rule or name.startswith(("stablehlo.", "chlo.")) or is_elementwise(name)
    )


class PaddedFactors:
    """The factors of an op along which it is padded, and the resulting sizes of its tensors.

    A factor is padded if `may_pad` holds for it, and no dimension that has it has another one. Its padded size is the
    largest that one of these dimensions has or must have. All other dimensions are without padding.
    """

    def __init__(self, uneven: UnevenOp, may_pad: Callable[[OpShardingRule, int], bool]) -> None:
        self._uneven = uneven
        rule = uneven.rule
        if rule is None:
            raise ValueError(f"'{uneven.op.name}' op cannot be padded: it has no sharding rule")
        self._rule = rule
        self._sizes: dict[int, int] = {}
        excluded: set[int] = set()
        shapes = (*uneven.operand_shapes, *uneven.result_shapes)
        operands = zip(uneven.op.operands, uneven.operand_shapes, strict=True)
        wanted = [tuple(value.type.shape) if own else () for value, own in operands] + uneven.even_result_shapes()
        for mapping, own, padded in zip(rule.tensor_mappings, shapes, wanted, strict=True):
            for dim, size in enumerate(own):
                factors = mapping.dim_mappings[dim].factor_indices
                if len(factors) != 1 or rule.factor_sizes[factors[0]] != size:
                    excluded.update(factors)
                elif padded[dim] != size and may_pad(rule, factors[0]):
                    self._sizes[factors[0]] = max(padded[dim], self._sizes.get(factors[0], 0))
        for factor in excluded & self._sizes.keys():
            del self._sizes[factor]

    def operand_shapes(self) -> list[Shape]:
        """Returns the padded shapes of the operands."""
        return self._shapes(self._rule.operand_mappings, self._uneven.operand_shapes)

    def result_shapes(self) -> list[Shape]:
        """Returns the padded shapes of the results."""
        return self._shapes(self._rule.result_mappings, self._uneven.result_shapes)

    def dims_without_result(self, operand: int) -> list[int]:
        """Returns the padded dimensions of an operand that are in no result: their padding would affect the results."""
        mapping = self._rule.operand_mappings[operand].dim_mappings
        factors = [of_dim.factor_indices[:1] for of_dim in mapping]
        return [
            dim
            for dim, first in enumerate(factors)
            if any(factor in self._sizes and not in_result(self._rule, factor) for factor in first)
        ]

    def _shapes(self, mappings: Sequence[TensorMapping], shapes: Sequence[Shape]) -> list[Shape]:
        return [
            tuple(self._size(dim, size) for dim, size in zip(mapping.dim_mappings, own, strict=True)) if own else ()
            for mapping, own in zip(mappings, shapes, strict=True)
        ]

    def _size(self, mapping: DimMapping, size: int) -> int:
        return max([size, *(self._sizes.get(factor, size) for factor in mapping.factor_indices[:1])])


def in_result(rule: OpShardingRule, factor: int) -> bool:
    """Returns whether a result has the factor."""
    return any(mapping.contains_factor(factor) for mapping in rule.result_mappings)


def is_made(rule: OpShardingRule, factor: int) -> bool:
    """Returns whether the op makes elements along the factor, from none or from elements at the same place."""
    return rule.factor_type(factor) is FactorType.PASS_THROUGH and in_result(rule, factor)


def passes_through(rule: OpShardingRule, factor: int) -> bool:
    """Returns whether elements along the factor come only from those at the same place: padding makes padding."""
    in_operand = any(mapping.contains_factor(factor) for mapping in rule.operand_mappings)
    return in_operand and is_made(rule, factor)


def passes_through_or_is_reduced(rule: OpShardingRule, factor: int) -> bool:
    """Returns whether padding makes padding along the factor, or can be made neutral."""
    return passes_through(rule, factor) or rule.factor_type(factor) is FactorType.REDUCTION


def pad_along_factors(uneven: UnevenOp) -> None:
    """Pads the op along the factors that pass through it; the op must have its sizes in its types only."""
    factors = PaddedFactors(uneven, passes_through)
    uneven.set_operands(factors.operand_shapes())
    uneven.set_results(factors.result_shapes())


@padding_of("stablehlo.broadcast_in_dim")
def pad_all_along_factors(uneven: UnevenOp) -> None:
    """Pads the op as `pad_along_factors` does, and along the factors that only results have."""
    factors = PaddedFactors(uneven, is_made)
    uneven.set_operands(factors.operand_shapes())
    uneven.set_results(factors.result_shapes())


def pad_nothing(uneven: UnevenOp) -> None:
    """Removes the padding of the op's operands, and pads its results after it."""
    uneven.set_operands(uneven.operand_shapes)
    uneven.set_results(uneven.result_shapes)


# Targets of custom calls that take tensors element by element, or not at all.
ELEMENTWISE_TARGETS = (
    *("annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost"),
    *("X64SplitHigh", "X64SplitLow", "mhlo.erf"),
)


@padding_of(*RESHARDING_OPS)
def move(uneven: UnevenOp) -> None:
    """Pads a moved tensor to fit both shardings, and cuts the result to the second one.

    Padding with zeros remains zeros, also when summed.
    """
    op, values = uneven.op, uneven.values
    (own,), (even,) = uneven.result_shapes, uneven.even_result_shapes()
    have = op.operands[0].type.shape
    shape = tuple(map(max, have, even))
    op.operands[0] = values.resized(op.operands[0], shape)
    result = op.results[0]
    users = [use.owner.operation for use in result.uses]
    values.set_shape(result, shape, own)
    if values.is_zero_padded(op.operands[0]):
        values.set_zero_padded(result)
    if shape != even:
        with ir.InsertionPoint.after(op):
            values.replace(result, values.resized(result, even), users)


@padding_of("stablehlo.iota")
def iota(uneven: UnevenOp) -> None:
    """Continues the numbers in the padding."""
    uneven.set_results(uneven.even_result_shapes())


@padding_of("stablehlo.constant")
def constant(uneven: UnevenOp) -> None:
    """Gives a splat a larger shape; any other constant keeps its shape and is padded after it."""
    # The bindings have no view of complex constants.
    is_number = isinstance(uneven.op.results[0].type.element_type, ir.FloatType | ir.IntegerType)
    value = uneven.op.attributes["value"] if is_number else None
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        pad_nothing(uneven)
        return
    (even,) = uneven.even_result_shapes()
    type_ = stablehlo.with_shape(value.type, even)
    uneven.op.attributes["value"] = ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())
    uneven.set_results([even])


@padding_of("stablehlo.custom_call")
def custom_call(uneven: UnevenOp) -> None:
    """Pads calls of targets that are known to be elementwise, or that have a rule of the user; pads no other call."""
    is_elementwise = stablehlo.call_target(uneven.op) in ELEMENTWISE_TARGETS
    is_ruled = uneven.rule is not None and (is_elementwise or uneven.rule.is_custom_rule)
    (pad_along_factors if is_ruled else pad_nothing)(uneven)
