# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO that XLA:CPU expands to several instructions, with memory between them, or to none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.explain.allocation.instructions import Emit, Role, Traits, Value
from mlir_shard.explain.allocation.local_values import Op, Tensor
from mlir_shard.explain.allocation.xla_library import LARGE
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_names import op_names

_bindings = host.module("_mlir_libs._stablehlo")
_VIEW = Traits(Role.FUSIBLE, is_folded=True, is_view=True)
_MOVED = Traits(Role.FUSIBLE, is_folded=True)
_CREATED = Traits(Role.FUSIBLE)
_OPAQUE = Traits(Role.OPAQUE)
_COLLECTIVE = Traits(Role.OPAQUE, is_pure=False, is_collective=True)
_UPDATE = Traits(Role.OPAQUE, updates=1)
_MOVES = frozenset(op_names("stablehlo", "broadcast_in_dim concatenate slice"))
_CONVERTED = Traits(Role.FUSIBLE, is_elementwise=True, is_folded=True)
_INVERSE = Traits(Role.FUSIBLE, is_elementwise=True, is_expensive=True, is_folded=True)
_PRODUCTS = frozenset(op_names("stablehlo", "dot dot_general"))
_INDEX_BYTES = 4
_BF16, _F32_BYTES = "bf16", 4
# Reductions of longer dimensions have a first step by windows of this size.
_WINDOW = 32


def expand(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Returns the results of an operation that is expanded; None for an operation that is a single instruction."""
    expansion = _EXPANSIONS.get(op.name)
    return None if expansion is None else expansion(op, operands, tensors, emit)


def _view(value: Value, tensor: Tensor, emit: Emit) -> Value:
    if value.tensor == tensor:
        return value
    if value.definer.traits.is_view:
        value = value.definer.operands[0]
    return emit("view", _VIEW, [value], [tensor])[0]


def _reshape(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    return [_view(operands[0], op.signature.results[0], emit)]


def _barrier(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    return operands


def _convert(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    return operands if tensors[0] == op.signature.results[0] else None


def _move(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Returns a view if only dimensions of size 1 are added or dropped; else None."""
    result = op.signature.results[0]
    if len(operands) == 1 and _large(tensors[0].shape) == _large(result.shape):
        return [_view(operands[0], result, emit)]
    return None


def _transpose(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    order = op.signature.op.attributes["permutation"]
    if _keeps_order(tensors[0].shape, order):
        return [_view(operands[0], op.signature.results[0], emit)]
    product = operands[0].definer
    if product.name in _PRODUCTS and len(tensors[0].shape) == 2:
        # The product of swapped operands is the transpose.
        swapped = product.operands[::-1]
        return emit(product.name, product.traits, swapped, op.signature.results, (id(product), "swapped"))
    return None


def _ordered(value: Value, tensor: Tensor, order: Sequence[int], emit: Emit) -> Value:
    """Returns a value with its dimensions in another order: a view if the order in memory is the same, else a copy."""
    shape = tuple(tensor.shape[axis] for axis in order)
    result = Tensor(tensor.bytes, shape, tensor.element, tensor.type)
    if _keeps_order(tensor.shape, order):
        return _view(value, result, emit)
    return emit("copy", _MOVED, [value], [result], tuple(order))[0]


def _dot(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a product of operands with one dimension each for batches, rows and columns, in this order."""
    numbers = _bindings.DotDimensionNumbers(op.signature.op.attributes["dot_dimension_numbers"])
    batches = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    contracted = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    free = [
        [axis for axis in range(len(tensor.shape)) if axis not in batch and axis not in inner]
        for tensor, batch, inner in zip(tensors, batches, contracted, strict=True)
    ]
    count = len(batches[0])
    first = list(range(count))
    is_canonical = len(contracted[0]) == 1 and all(
        batch == first and len(tensor.shape) <= count + 2 for batch, tensor in zip(batches, tensors, strict=True)
    )
    given = []
    for side, (value, tensor) in enumerate(zip(operands, tensors, strict=True)):
        value = _folded_transpose(value, tensor)
        is_matrix = batches[side] == first and len(free[side]) == len(contracted[side]) == 1
        if not is_canonical and not is_matrix:
            kinds = (free[side], contracted[side]) if side == 0 else (contracted[side], free[side])
            value = _ordered(value, tensor, [*batches[side], *kinds[0], *kinds[1]], emit)
            shape = (*(tensor.shape[axis] for axis in batches[side]), *(_product(tensor, one) for one in kinds))
            value = _view(value, _shaped(tensor, shape), emit)
        given.append(value)
    (result,) = op.signature.results
    rows, columns = _product(tensors[0], free[0]), _product(tensors[1], free[1])
    made = result if is_canonical else _shaped(result, (*result.shape[:count], rows, columns))
    found = _in_f32(op.name, _OPAQUE, given, [made], op.signature.number, emit)
    return [_view(found[0], result, emit)]


def _plain_dot(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    given = [_folded_transpose(value, tensor) for value, tensor in zip(operands, tensors, strict=True)]
    # The key includes which sides are transposed.
    key = (op.signature.number, *(value is one for value, one in zip(given, operands, strict=True)))
    return _in_f32(op.name, _OPAQUE, given, op.signature.results, key, emit)


def _folded_transpose(value: Value, tensor: Tensor) -> Value:
    """Returns the operand of a transpose of a matrix, which products read directly; other values are unchanged."""
    if value.definer.name == "stablehlo.transpose" and len(tensor.shape) == 2:
        return value.definer.operands[0]
    return value


def _product(tensor: Tensor, axes: Sequence[int]) -> int:
    return prod(tensor.shape[axis] for axis in axes)


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(tensor.element * prod(shape), shape, tensor.element, tensor.type)


def _in_f32(
    name: str, traits: Traits, operands: Sequence[Value], tensors: Sequence[Tensor], key: object, emit: Emit
) -> list[Value]:
    """Emits an instruction that XLA:CPU supports for f32 but not for bf16, with conversions of bf16."""
    if all(tensor.type != _BF16 for tensor in (*tensors, *(one.tensor for one in operands))):
        return emit(name, traits, operands, tensors, key)
    given = [_as(value, "f32", emit) for value in operands]
    wide = [_typed(tensor, "f32") if tensor.type == _BF16 else tensor for tensor in tensors]
    found = emit(name, traits, given, wide, key)
    return [
        emit("stablehlo.convert", _CONVERTED, [value], [tensor])[0] if tensor.type == _BF16 else value
        for value, tensor in zip(found, tensors, strict=True)
    ]


def _as(value: Value, type_: str, emit: Emit) -> Value:
    if value.tensor.type != _BF16:
        return value
    return emit("stablehlo.convert", _CONVERTED, [value], [_typed(value.tensor, type_)])[0]


def _typed(tensor: Tensor, type_: str) -> Tensor:
    return Tensor(tensor.elements * _F32_BYTES, tensor.shape, _F32_BYTES, type_)


def _collective(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    return _in_f32(op.name, _COLLECTIVE, operands, op.signature.results, op.number, emit)


def _convolution(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a convolution with batches first and features last; in kernels, input features precede output features."""
    attributes = op.signature.op.attributes
    numbers = _bindings.ConvDimensionNumbers(attributes["dimension_numbers"])
    image = [
        numbers.input_batch_dimension,
        *numbers.input_spatial_dimensions,
        numbers.input_feature_dimension,
    ]
    kernel = [
        *numbers.kernel_spatial_dimensions,
        numbers.kernel_input_feature_dimension,
        numbers.kernel_output_feature_dimension,
    ]
    output = [
        numbers.output_batch_dimension,
        *numbers.output_spatial_dimensions,
        numbers.output_feature_dimension,
    ]
    weights = operands[1]
    if "window_reversal" in attributes and any(elements(attributes["window_reversal"])):
        (weights,) = emit("stablehlo.reverse", _MOVED, [weights], [weights.tensor], op.signature.number)
    given = [_ordered(operands[0], tensors[0], image, emit), _ordered(weights, tensors[1], kernel, emit)]
    (result,) = op.signature.results
    made = Tensor(result.bytes, tuple(result.shape[axis] for axis in output), result.element, result.type)
    found = emit(op.name, _OPAQUE, given, [made], op.signature.number)
    back = [output.index(axis) for axis in range(len(output))]
    return [_ordered(found[0], made, back, emit)]


def _reduce(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a reduction by windows before the reduction of long dimensions; returns None for others."""
    if len(op.results) != 1:
        return None
    axes = set(elements(op.signature.op.attributes["dimensions"]))
    shape = tensors[0].shape
    is_large = tensors[0].elements >= LARGE and tensors[0].type.startswith(("f", "bf"))
    if is_large or all(shape[axis] <= _WINDOW for axis in axes):
        return None
    left = tuple(-(-size // _WINDOW) if axis in axes else size for axis, size in enumerate(shape))
    element = tensors[0].element
    windows = Tensor(element * prod(left), left, element, tensors[0].type)
    (reduced,) = emit("reduce_window", _OPAQUE, operands, [windows], op.signature.number)
    return emit(
        op.name,
        Traits(Role.FUSIBLE, is_expensive=True),
        [reduced, operands[1]],
        op.signature.results,
        op.signature.number,
    )


def _divide(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a product with the inverse, which is computed once for each division, and before a broadcast."""
    (result,) = op.signature.results
    by = operands[1].definer
    if not result.type.startswith(("f", "bf")):
        return None
    factor = operands[1]
    if by.traits.role is not Role.CONSTANT:
        if by.name != "stablehlo.broadcast_in_dim":
            return None
        source = by.operands[0] if by.operands else None
        if source is not None:
            if source.tensor.elements == factor.tensor.elements:
                return None
            (inverse,) = emit("stablehlo.divide", _INVERSE, [source], [source.tensor], op.number)
            (factor,) = emit("stablehlo.broadcast_in_dim", _MOVED, [inverse], [factor.tensor], op.number)
    return emit("stablehlo.multiply", _CONVERTED, [operands[0], factor], [result])


def _power(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a product for a constant exponent; returns None for others."""
    by = operands[1].definer
    while by.name == "stablehlo.broadcast_in_dim" and by.operands:
        by = by.operands[0].definer
    if by.traits.role is not Role.CONSTANT and by.operands:
        return None
    return emit("stablehlo.multiply", _CONVERTED, operands[:1], op.signature.results, op.signature.number)


def _all_to_all(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits slices of the parts, their exchange as several operands, and a concatenation."""
    count = op.signature.op.attributes["split_count"].value
    if len(operands) != 1 or count == 1:
        return None
    whole = tensors[0]
    axis = op.signature.op.attributes["split_dimension"].value
    shape = tuple(size // count if at == axis else size for at, size in enumerate(whole.shape))
    part = Tensor(whole.bytes // count, shape, whole.element, whole.type)
    sent = [
        emit("stablehlo.slice", _MOVED, operands, [part], (op.signature.number, number))[0] for number in range(count)
    ]
    received = emit(op.name, _COLLECTIVE, sent, [part] * count, op.number)
    return emit("stablehlo.concatenate", _MOVED, received, op.signature.results, op.number)


def _all_gather(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits an all-gather whose gathered dimension is the outermost in memory, with copies if it is not."""
    return _outermost(op, operands, tensors, "all_gather_dim", emit)


def _reduce_scatter(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a reduce-scatter whose scattered dimension is the outermost in memory, with copies if it is not."""
    return _outermost(op, operands, tensors, "scatter_dimension", emit)


def _outermost(op: Op, operands: list[Value], tensors: Sequence[Tensor], name: str, emit: Emit) -> list[Value] | None:
    axis = op.signature.op.attributes[name].value
    if all(size == 1 for tensor in tensors for size in tensor.shape[:axis]):
        return _collective(op, operands, tensors, emit)
    given = [
        value
        if value.definer.traits.role is Role.FUSIBLE and not value.definer.traits.is_view
        else emit("copy", _MOVED, [value], [value.tensor], axis)[0]
        for value in operands
    ]
    results = _in_f32(op.name, _COLLECTIVE, given, op.signature.results, op.number, emit)
    return [emit("copy", _MOVED, [value], [value.tensor], -1 - axis)[0] for value in results]


def _custom_call(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a call of a library with its layouts of operands and results; results may reuse the memory of operands."""
    attributes = op.signature.op.attributes
    if "result_layouts" not in attributes or "operand_layouts" not in attributes:
        return None
    given = [
        _laid_out(value, layout, emit) for value, layout in zip(operands, attributes["operand_layouts"], strict=True)
    ]
    aliases = attributes.get("output_operand_aliases") or ()
    traits = Traits(Role.OPAQUE, is_pure=False, updates=len(aliases))
    results = emit(op.name, traits, given, op.signature.results, op.number)
    return [_laid_out(value, layout, emit) for value, layout in zip(results, attributes["result_layouts"], strict=True)]


def _laid_out(value: Value, layout: Any, emit: Emit) -> Value:
    """Emits a copy of a value to or from a layout; returns the value itself if the layout is row-major."""
    order = list(layout)
    if order == list(range(len(order)))[::-1]:
        return value
    return emit("copy", _MOVED, [value], [value.tensor], tuple(order))[0]


def _select_and_scatter(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
    """Emits a reduction that finds the indices of selected elements, and a scatter of the source to these indices."""
    source, given = tensors[1], tensors[0]
    rank = len(given.shape)
    numbers = Tensor(given.elements * _INDEX_BYTES, given.shape, _INDEX_BYTES, "i32")
    places = Tensor(source.elements * _INDEX_BYTES, source.shape, _INDEX_BYTES, "i32")
    # The indices of dimensions of size 1 are zeros, and share one iota.
    axes = [axis if given.shape[axis] != 1 else rank for axis in range(rank)]
    iotas = [emit("stablehlo.iota", _CREATED, [], [numbers], axis)[0] for axis in axes]
    found = emit("reduce_window", _OPAQUE, [operands[0], *iotas], [source, *[places] * rank], op.signature.number)
    indices = Tensor(places.bytes * rank, (source.elements, rank), _INDEX_BYTES, "i32")
    (joined,) = emit("stablehlo.concatenate", _MOVED, found[1:], [indices])
    (zeros,) = emit("stablehlo.broadcast_in_dim", _CREATED, [operands[2]], [op.signature.results[0]])
    return emit("stablehlo.scatter", _UPDATE, [zeros, joined, operands[1]], op.signature.results, op.signature.number)


def _large(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _keeps_order(shape: Sequence[int], order: Sequence[int]) -> bool:
    """Returns whether dimensions in another order have the same order in memory."""
    kept = [axis for axis in order if shape[axis] != 1]
    return kept == sorted(kept)


_Expansion = Callable[[Op, list[Value], Sequence[Tensor], Emit], list[Value] | None]

_EXPANSIONS: dict[str, _Expansion] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _collective,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.broadcast_in_dim": _move,
    "stablehlo.collective_permute": _collective,
    "stablehlo.concatenate": _move,
    "stablehlo.convert": _convert,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.divide": _divide,
    "stablehlo.dot": _plain_dot,
    "stablehlo.dot_general": _dot,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.power": _power,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.reshape": _reshape,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _move,
    "stablehlo.transpose": _transpose,
}
