# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pads tensors in uneven shards with values that no result depends on, as Shardy does.

The ops concerned are read before anything is padded; values that enter and leave regions are padded along data-flow
edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.ir.editing import terminator as last_op
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.registry import has_rule
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import total_size
from mlir_shard.transforms.limits import check_sizes
from mlir_shard.transforms.padding import padded_ops
from mlir_shard.transforms.padding.padded_values import PaddedValues, PaddingError, Shape
from mlir_shard.transforms.padding.padding_rules import UnevenOp, pad, padding_of
from mlir_shard.transforms.shardings import COMPUTING, Side, listed_meshes, rule_cache, shardings_of, types_of

__all__ = ["PadForDivisibility", "pad_function", "padded_ops", "padding_of"]

RETURN = "func.return"
MANUAL = "sdy.manual_computation"
# Ops whose terminators determine their results.
REGION_OPS = ("stablehlo.case", "stablehlo.if", "stablehlo.while", "sdy.named_computation", MANUAL)


@padding_of("stablehlo.case", "stablehlo.if")
def branches(uneven: UnevenOp) -> None:
    """Pads the results of each branch."""
    uneven.set_operands(uneven.operand_shapes)
    uneven.set_results(uneven.even_result_shapes())


@padding_of("stablehlo.while", "stablehlo.optimization_barrier")
def loop(uneven: UnevenOp) -> None:
    """Pads the operands of the op and the arguments of its regions as its results."""
    even = uneven.even_result_shapes()
    uneven.set_operands(even)
    for region in uneven.op.regions:
        for argument, shape in zip(region.blocks[0].arguments, even, strict=True):
            if shape:
                uneven.values.set_shape(argument, shape)
    uneven.set_results(even)


@padding_of("sdy.named_computation", MANUAL)
def computation(uneven: UnevenOp) -> None:
    """Pads operands and arguments for the input shardings of the computation, and results for its output shardings."""
    op, values = uneven.op, uneven.values
    inside = op.attributes.get("in_shardings")
    shardings = list(map(sharding_of, op.operands) if inside is None else inside.value.shardings)
    _check_not_split(op, [*uneven.operand_shapes, *uneven.result_shapes], [*shardings, *map(sharding_of, op.results)])
    pairs = zip(uneven.operand_shapes, shardings, strict=True)
    uneven.set_operands([values.even_shape(own, sharding) if own else () for own, sharding in pairs])
    for argument in op.regions[0].blocks[0].arguments:
        if isinstance(argument.type, ir.RankedTensorType):
            values.set_shape(argument, values.even_shape(values.shape(argument), sharding_of(argument)))
    uneven.set_results(uneven.even_result_shapes())


def manual_axes(op: Any) -> frozenset[str]:
    """Returns the axes along which a computation is manual."""
    return frozenset(op.attributes["manual_axes"].value.value) if op.name == MANUAL else frozenset()


def _check_not_split(op: Any, shapes: Sequence[Shape], shardings: Sequence[TensorSharding | None]) -> None:
    """Raises PassFailure if manual shards are sharded further, unevenly: each would need its own padding."""
    manual, meshes = manual_axes(op), listed_meshes(op)
    for own, sharding in zip(shapes, shardings, strict=True):
        mesh = None if sharding is None else mesh_of(sharding, meshes)
        if sharding is None or mesh is None:
            continue
        for dim, of in enumerate(sharding.dim_shardings):
            shards = of.sharded_size(mesh)
            if own[dim] % shards and any(axis.name in manual for axis in of.axes):
                raise PassFailure(
                    f"'{op.name}' op has a tensor sharded as {sharding}, whose dimension {dim} of size {own[dim]} "
                    f"is not divisible by {shards}: shards along manual axes must be divisible by the sizes of the "
                    "other axes",
                    op,
                )


@padding_of("sdy.return", "stablehlo.return")
def terminator(uneven: UnevenOp) -> None:
    """Pads the operands of a terminator as the results of the op around it; the condition of a loop is not padded."""
    around = uneven.op.parent.operation
    is_condition = around.name == "stablehlo.while" and uneven.op.block == around.regions[0].blocks[0]
    if is_condition or around.name not in REGION_OPS:
        uneven.set_operands(uneven.operand_shapes)
        return
    manual = manual_axes(around)
    uneven.set_operands(
        [
            _inside(result, manual, uneven.values) if isinstance(result.type, ir.RankedTensorType) else ()
            for result in around.results
        ]
    )


def _inside(result: Any, manual: frozenset[str], values: PaddedValues) -> Shape:
    """Returns the shape that a result has in the region."""
    sharding = sharding_of(result)
    mesh = mesh_of(sharding, listed_meshes(result.owner)) if sharding is not None and manual else None
    shape = tuple(result.type.shape)
    if sharding is None or mesh is None:
        return shape
    return tuple(
        size // total_size((axis for axis in of.axes if axis.name in manual), mesh)
        for size, of in zip(shape, sharding.dim_shardings, strict=True)
    )


def uneven_ops(function: Any, values: PaddedValues) -> list[UnevenOp]:
    """Returns the ops with an operand or a result in uneven shards, and the terminators in them, in pre-order.

    Raises RuleError if one of them has no valid sharding rule.
    """
    rules = rule_cache(COMPUTING)
    known: dict[Any, bool] = {}

    def is_uneven(value: Any) -> bool:
        if value not in known:
            shape = shape_of(value.type)
            known[value] = values.even_shape(shape, sharding_of(value)) != shape if shape else False
        return known[value]

    found: dict[Any, UnevenOp] = {}
    for op in ops_below(function):
        inside = (
            [] if op.name not in REGION_OPS else [one for region in op.regions for one in region.blocks[0].arguments]
        )
        gives_results = op.name in ("sdy.return", "stablehlo.return") and op.parent.operation in found
        if gives_results or any(map(is_uneven, (*op.operands, *op.results, *inside))):
            found[op] = UnevenOp(
                op,
                rules.rule_for(op) if has_rule(op) or sdy.SHARDING_RULE in op.attributes else None,
                tuple(shape_of(operand.type) for operand in op.operands),
                tuple(shape_of(result.type) for result in op.results),
                values,
            )
    return list(found.values())


@register
class PadForDivisibility(Pass):
    """Pads each tensor whose sizes are not divisible by the numbers of shards to the next divisible sizes.

    Operands and results of ops must be compatible, as `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`
    and `sdy-reshard-to-collectives` leave them. Padding is at the end of a dimension. If an op would combine padding
    with elements, a mask sets the padding to neutral elements; an op that needs the unpadded tensor gathers it and
    slices the padding off. Arguments and results of functions must have even shards.
    """

    name = "sdy-pad-for-divisibility"
    anchor = "func.func"
    summary = "Pads tensors with uneven shards to divisible shapes"

    def run(self, op: Any) -> bool:
        check_sizes(op)
        return pad_function(op, listed_meshes(op))


def pad_function(
    function: Any,
    meshes: Mapping[str, Mesh],
    padding: Callable[[Any], Any] | None = None,
    *,
    pads_signature: bool = False,
) -> bool:
    """Pads a function as the pass does; returns whether it has changed anything.

    Args:
        padding: makes the scalar constant of an element type that tensors are padded with at first; zeros by default.
        pads_signature: pad results, and arguments by zeros that the caller has to pass, too.

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
    """Sets the type of a function to the types of its arguments and of the values that it returns."""
    block, returned = function.regions[0].blocks[0], last_op(function).operands
    type_ = ir.FunctionType.get([value.type for value in block.arguments], [value.type for value in returned])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _pad(uneven: UnevenOp) -> None:
    try:
        with ir.InsertionPoint(uneven.op), uneven.op.location:
            pad(uneven)
    except PaddingError as error:
        raise PassFailure(f"'{uneven.op.name}' op: {error}", uneven.op) from error


def _check_signature(function: Any, values: PaddedValues) -> None:
    """Raises PassFailure if arguments or results are in uneven shards, with an error for each of them."""
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
            "failed to legalize operation 'func.func': arguments and results of functions must have even shards",
            function,
        )
