# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding of what moves tensors as they are, between devices or elsewhere, and of what makes them from nothing."""

from __future__ import annotations

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.transforms.partition.padding_rules import UnevenOp, pad_along_factors, pad_nothing, padding_of
from mlir_shard.transforms.reshard.planned_collectives import SIZES, UNEVEN_EXCHANGE, is_exchange

# What has one operand and one result, which are the same but for their shardings.
MOVES = (
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.propagation_barrier",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.reshard",
    "sdy.sharded_to_unreduced",
    "sdy.sharding_constraint",
)
# Targets of custom calls that take tensors element by element, or not at all.
ELEMENTWISE_TARGETS = (
    "annotate_device_placement",
    "InspectSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "X64SplitHigh",
    "X64SplitLow",
    "mhlo.erf",
)


@padding_of(*MOVES)
def move(uneven: UnevenOp) -> None:
    """What is moved fits both shardings, and is cut to the second one afterwards.

    Zeros stay zeros, summed up too.
    """
    if is_exchange(uneven.op):
        _exchange(uneven)
        return
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


def _exchange(uneven: UnevenOp) -> None:
    """A direct exchange is from even shards of one size to those of another, and leaves zeros behind what it moves."""
    op, values = uneven.op, uneven.values
    result, (own,), (even,) = op.results[0], uneven.result_shapes, uneven.even_result_shapes()
    attributes = {
        "call_target_name": ir.StringAttr.get(UNEVEN_EXCHANGE),
        SIZES: ir.DenseI64ArrayAttr.get(own),
    }
    operand = values.resized(op.operands[0], values.even_shape(own, sharding_of(op.operands[0])))
    type_ = stablehlo.with_shape(result.type, even)
    exchanged = stablehlo.build("custom_call", type_, operand, sharding=op.attributes["sharding"].value, **attributes)
    values.set_shape(exchanged, even, own)
    values.set_zero_padded(exchanged)
    values.replace(result, exchanged, [use.owner.operation for use in result.uses])
    op.erase()


@padding_of("stablehlo.iota")
def iota(uneven: UnevenOp) -> None:
    """The numbers go on in the padding."""
    uneven.set_results(uneven.even_result_shapes())


@padding_of("stablehlo.constant")
def constant(uneven: UnevenOp) -> None:
    """Of one number all over there is more; any other is made whole, padded and sliced."""
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
    is_elementwise = uneven.op.attributes["call_target_name"].value in ELEMENTWISE_TARGETS
    is_ruled = uneven.rule is not None and (is_elementwise or uneven.rule.is_custom_rule)
    (pad_along_factors if is_ruled else pad_nothing)(uneven)
