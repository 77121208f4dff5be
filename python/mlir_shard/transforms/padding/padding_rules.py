# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an op takes padded operands and makes padded results: functions, registered by op name.

Those of ops that move tensors as they are, or make them from nothing, are here.
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
    """An op some of whose tensors are padded, or have to be.

    `rule` is its sharding rule and the shapes are those of its operands and results, all without padding; a value that
    is no ranked tensor has the shape ().
    """

    op: Any
    rule: OpShardingRule | None
    operand_shapes: tuple[Shape, ...]
    result_shapes: tuple[Shape, ...]
    values: PaddedValues

    def even_result_shapes(self) -> list[Shape]:
        """The shapes that results have to have for their shards to be even."""
        shardings = map(sharding_of, self.op.results)
        pairs = zip(self.result_shapes, shardings, strict=True)
        return [self.values.even_shape(shape, sharding) if shape else () for shape, sharding in pairs]

    def set_operands(self, shapes: Sequence[Shape]) -> None:
        """Gives the op its operands with other sizes."""
        for index, shape in enumerate(shapes):
            operand = self.op.operands[index]
            if shape and tuple(operand.type.shape) != tuple(shape):
                self._check_whole(index, shape)
                self.op.operands[index] = self.values.resized(operand, shape)

    def set_results(self, shapes: Sequence[Shape]) -> None:
        """Gives results the sizes that the op makes, and their users what fits the shardings."""
        for result, own, shape in zip(self.op.results, self.result_shapes, shapes, strict=True):
            if shape:
                self.values.set_shape(result, shape, own)
                self.values.finish(result)

    def _selects_all(self) -> bool:
        """Whether the op selects elements, and nothing adds up what devices have selected of their blocks."""
        users = (use.owner.operation.name for result in self.op.results for use in result.uses)
        return self.op.name in SELECTING_OPS and not any(name in _REDUCING for name in users)

    def _check_whole(self, index: int, shape: Shape) -> None:
        """Raises PassFailure if a dimension of which each device has to compute a part must not be sharded."""
        if self.rule is None or self._selects_all():
            return
        have = self.op.operands[index].type.shape
        for dim, mapping in enumerate(self.rule.operand_mappings[index].dim_mappings):
            is_reduced = any(self.rule.factor_type(one) is FactorType.REDUCTION for one in mapping.factor_indices[:1])
            if is_reduced and shape[dim] < have[dim]:
                raise PassFailure(
                    f"'{self.op.name}' op reduces dimension {dim} of operand {index}, whose shards are not even, and "
                    "nothing is known to pad it with: its sizes have to be divisible by the number of shards",
                    self.op,
                )


_REDUCING = frozenset(("sdy.all_reduce", "sdy.reduce_scatter"))
PadFunction = Callable[[UnevenOp], None]
_ROLE = "padding"
_by_name: dict[str, PadFunction] = {}


def padding_of(*names: str) -> Callable[[PadFunction], PadFunction]:
    """Registers a function that pads ops of these names, or all of a dialect (`"attn.*"`).

    It gets an `UnevenOp`, at an insertion point before the op, and changes the op in place, for example by
    `pad_along_factors`.
    """
    check_op_names(names)

    def register(function: PadFunction) -> PadFunction:
        check_takes(_ROLE, function, "uneven")
        _by_name.update(dict.fromkeys(names, function))
        return function

    return register


def pad(uneven: UnevenOp) -> None:
    """Pads an op by its function. InterfaceError where that is a user's, and fails."""
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
    """The factors of an op along which it is padded, and the sizes that its tensors have then.

    A factor is padded if `may_pad` holds for it, and no dimension that has it has another one, to the size that the
    largest of those dimensions has or must have. All other dimensions are without padding.
    """

    def __init__(self, uneven: UnevenOp, may_pad: Callable[[OpShardingRule, int], bool]) -> None:
        self._uneven = uneven
        rule = uneven.rule
        if rule is None:
            raise ValueError(f"'{uneven.op.name}' op has no sharding rule to be padded by")
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
        """The shapes of the operands, padded."""
        return self._shapes(self._rule.operand_mappings, self._uneven.operand_shapes)

    def result_shapes(self) -> list[Shape]:
        """The shapes of the results, padded."""
        return self._shapes(self._rule.result_mappings, self._uneven.result_shapes)

    def dims_without_result(self, operand: int) -> list[int]:
        """The padded dimensions of an operand that are in no result: padding in them would be computed with."""
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
    """Whether a result has the factor."""
    return any(mapping.contains_factor(factor) for mapping in rule.result_mappings)


def is_made(rule: OpShardingRule, factor: int) -> bool:
    """Whether the op makes elements along the factor, or makes them of those at the same place."""
    return rule.factor_type(factor) is FactorType.PASS_THROUGH and in_result(rule, factor)


def passes_through(rule: OpShardingRule, factor: int) -> bool:
    """Whether elements along the factor come from elements at the same place alone, so that padding makes padding."""
    in_operand = any(mapping.contains_factor(factor) for mapping in rule.operand_mappings)
    return in_operand and is_made(rule, factor)


def passes_through_or_is_reduced(rule: OpShardingRule, factor: int) -> bool:
    """Whether padding makes padding along the factor, or can be made neutral."""
    return passes_through(rule, factor) or rule.factor_type(factor) is FactorType.REDUCTION


def pad_along_factors(uneven: UnevenOp) -> None:
    """Pads the op along the factors that pass through it; its sizes are in its types only."""
    factors = PaddedFactors(uneven, passes_through)
    uneven.set_operands(factors.operand_shapes())
    uneven.set_results(factors.result_shapes())


@padding_of("stablehlo.broadcast_in_dim")
def pad_all_along_factors(uneven: UnevenOp) -> None:
    """As `pad_along_factors`, also along the factors that are of results alone."""
    factors = PaddedFactors(uneven, is_made)
    uneven.set_operands(factors.operand_shapes())
    uneven.set_results(factors.result_shapes())


def pad_nothing(uneven: UnevenOp) -> None:
    """Gives the op its operands without padding, and its results theirs after it."""
    uneven.set_operands(uneven.operand_shapes)
    uneven.set_results(uneven.result_shapes)


# Targets of custom calls that take tensors element by element, or not at all.
ELEMENTWISE_TARGETS = (
    *("annotate_device_placement", "InspectSharding", "LayoutConstraint", "MoveToDevice", "MoveToHost"),
    *("X64SplitHigh", "X64SplitLow", "mhlo.erf"),
)


@padding_of(*RESHARDING_OPS)
def move(uneven: UnevenOp) -> None:
    """What is moved fits both shardings, and is cut to the second one afterwards.

    Zeros stay zeros, summed up too.
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
    """The numbers go on in the padding."""
    uneven.set_results(uneven.even_result_shapes())


@padding_of("stablehlo.constant")
def constant(uneven: UnevenOp) -> None:
    """A splat gets a larger shape; any other constant is padded and sliced."""
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
    """Only what is known to be elementwise is called with padding, or what a user has given a rule."""
    is_elementwise = stablehlo.call_target(uneven.op) in ELEMENTWISE_TARGETS
    is_ruled = uneven.rule is not None and (is_elementwise or uneven.rule.is_custom_rule)
    (pad_along_factors if is_ruled else pad_nothing)(uneven)
