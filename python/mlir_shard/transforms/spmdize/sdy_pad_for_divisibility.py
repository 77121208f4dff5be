# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors whose shards are not even are padded, with values that no result depends on. The idea is Shardy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.host import ir
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.limits import check_sizes
from mlir_shard.transforms.shardings import Side, meshes_around, shardings_of, types_of
from mlir_shard.transforms.spmdize import padded_contractions, padded_moves, padded_regions, padded_slices
from mlir_shard.transforms.spmdize.padded_values import PaddedValues, PaddingError
from mlir_shard.transforms.spmdize.padding_rules import UnevenOp, pad, padding_of
from mlir_shard.transforms.spmdize.uneven_ops import uneven_ops

__all__ = [
    "PadForDivisibility",
    "pad_function",
    "padded_contractions",
    "padded_moves",
    "padded_regions",
    "padded_slices",
    "padding_of",
]

RETURN = "func.return"


@register
class PadForDivisibility(Pass):
    """Pads each tensor that a number of shards does not divide to the next size that it does.

    Operands and results of ops have to be sharded alike, as `sdy-insert-explicit-reshards`,
    `sdy-resolve-permutation-factors` and `sdy-reshard-to-collectives` leave them. Padding is behind; what would mix it
    with elements has neutral ones there, by a mask, and what needs all elements as they are gathers them and cuts the
    padding off. Arguments and results of functions have to be in even shards.
    """

    name = "sdy-pad-for-divisibility"
    anchor = "func.func"
    summary = "Pads tensors whose shards are not even"

    def run(self, op: Any) -> bool:
        check_sizes(op)
        return pad_function(op, meshes_around(op))


def pad_function(
    function: Any,
    meshes: Mapping[str, Mesh],
    padding: Callable[[Any], Any] | None = None,
    *,
    pads_signature: bool = False,
) -> bool:
    """What the pass does, and whether it has changed anything.

    Args:
        padding: makes the scalar constant of an element type that tensors are padded with at first; zeros by default.
        pads_signature: pad arguments, by zeros that the caller has to pass, and results too.

    Raises:
        PassFailure: the function cannot be padded.
    """
    values = PaddedValues(meshes, padding)
    if not len(function.regions[0].blocks):
        return False
    if not pads_signature:
        _check_signature(function, values)
    try:
        ops = uneven_ops(function, values)
        if pads_signature:
            ops = [uneven for uneven in ops if uneven.op.name != RETURN]
            _pad_arguments(function, values)
        for uneven in ops:
            _pad(uneven)
        if pads_signature:
            _set_type(function)
    except InterfaceError as error:
        raise PassFailure(str(error), error.op) from error
    return bool(ops)


def _pad_arguments(function: Any, values: PaddedValues) -> None:
    for argument in function.regions[0].blocks[0].arguments:
        if isinstance(argument.type, ir.RankedTensorType):
            own = tuple(argument.type.shape)
            values.set_shape(argument, values.even_shape(own, sharding_of(argument)), own)
            values.set_zero_padded(argument)


def _set_type(function: Any) -> None:
    """Gives a function the types of its arguments, and of what it returns."""
    block = function.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation.operands
    type_ = ir.FunctionType.get([value.type for value in block.arguments], [value.type for value in returned])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _pad(uneven: UnevenOp) -> None:
    try:
        with ir.InsertionPoint(uneven.op), uneven.op.location:
            pad(uneven)
    except PaddingError as error:
        raise PassFailure(f"'{uneven.op.name}' op: {error}", uneven.op) from error


def _check_signature(function: Any, values: PaddedValues) -> None:
    """Raises PassFailure where an argument or a result is in uneven shards, with an error for each."""
    is_even = True
    for side, word in ((Side.ARGUMENTS, "argument"), (Side.RESULTS, "result")):
        for index, (type_, sharding) in enumerate(
            zip(types_of(function, side), shardings_of(function, side), strict=True)
        ):
            if not isinstance(type_, ir.RankedTensorType) or values.even_shape(type_.shape, sharding) == tuple(
                type_.shape
            ):
                continue
            is_even = False
            function.location.emit_error(
                f"{word} #{index} has a non-divisible sharding: {type_} cannot be sharded evenly as {sharding}"
            )
    if not is_even:
        raise PassFailure(
            "failed to legalize operation 'func.func': what functions take and return has to be in even shards",
            function,
        )
