# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites operations of StableHLO to loops over elements: gathers, scatters, select_and_scatter, cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import inline_region
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.rules.computed_bodies import apply_body
from mlir_shard.rules.cumulative import cumulative_dim
from mlir_shard.rules.windows import windows_along_dims

_arith = host.dialect("arith")
_scf = host.dialect("scf")
_tensor = host.dialect("tensor")
# Returns the carried values after an iteration, given the position in the loop and the values before it.
Body = Callable[[Any, list[Any]], Sequence[Any]]
NestBody = Callable[[list[Any], list[Any]], Sequence[Any]]


def loop(start: Any, stop: Any, carried: Sequence[Any], body: Body, step: Any | None = None) -> list[Any]:
    """Returns the values carried through a loop over positions from `start` until before `stop`, which are indices."""
    made = _scf.ForOp(start, stop, index.constant(1) if step is None else step, list(carried))
    with host.ir.InsertionPoint(made.body):
        _scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
    return list(made.results)


def nest(sizes: Sequence[int], carried: Sequence[Any], body: NestBody) -> list[Any]:
    """Returns the values carried through a loop nest over the positions in a box, in row-major order."""

    def at(position: list[Any], rest: Sequence[int], now: Sequence[Any]) -> list[Any]:
        if not rest:
            return list(body(position, list(now)))
        first, *others = rest
        return loop(index.constant(0), index.constant(first), now, lambda one, held: at([*position, one], others, held))

    return at([], sizes, carried)


def read_element(tensor: Any, position: Sequence[Any]) -> Any:
    """Returns the element at a position, as a tensor of rank 0."""
    return boxed(_tensor.ExtractOp(tensor, list(position)).result)


def write(scalar: Any, tensor: Any, position: Sequence[Any]) -> Any:
    """Writes a scalar, which is a tensor of rank 0, at a position of a tensor and returns the new tensor."""
    return _tensor.InsertOp(unboxed(scalar), tensor, list(position)).result


def boxed(element: Any) -> Any:
    """Returns an element as a tensor of rank 0."""
    return _tensor.FromElementsOp(host.ir.RankedTensorType.get([], element.type), [element]).result


def unboxed(scalar: Any) -> Any:
    """Returns the element of a tensor of rank 0."""
    return _tensor.ExtractOp(scalar, []).result


def empty(type_: Any) -> Any:
    """Returns a tensor with undefined contents, to be written to."""
    return _tensor.EmptyOp(list(type_.shape), type_.element_type).result


def inlined(region: Any, scalars: Sequence[Any]) -> list[Any]:
    """Inlines a region for scalars and returns its results. Its operations are moved, so this is possible only once."""
    return inline_region(region, scalars, index.constant(0).owner)


def both(left: Any, right: Any) -> Any:
    """Returns the conjunction of two i1 values."""
    return _arith.AndIOp(left, right).result


def either(left: Any, right: Any) -> Any:
    """Returns the disjunction of two i1 values."""
    return _arith.OrIOp(left, right).result


def negation(value: Any) -> Any:
    """Returns the negation of an i1 value."""
    return _arith.XOrIOp(value, _arith.ConstantOp(value.type, 1).result).result


def truth(value: bool) -> Any:
    """Returns an i1 constant."""
    return _arith.ConstantOp(host.ir.IntegerType.get_signless(1), int(value)).result


def _parts(numbers: SliceNumbers, position: Sequence[Any], rank: int, indices: Any) -> tuple[list[Any], list[Any]]:
    """Returns the start in the operand of the slice at a position of the tensor of slices, and the offset in it."""
    batch = [one for dim, one in enumerate(position) if dim not in numbers.window_dims]
    start, within = [index.constant(0)] * rank, [index.constant(0)] * rank
    for number, dim in enumerate(numbers.index_map):
        at = list(batch)
        if numbers.index_vector_dim < len(indices.type.shape):
            at.insert(numbers.index_vector_dim, index.constant(number))
        start[dim] = index.of_integer(unboxed(read_element(indices, at)))
    for dim, of_indices in zip(numbers.batching, numbers.index_batching, strict=True):
        start[dim] = batch[of_indices - (of_indices > numbers.index_vector_dim)]
    for dim, of_window in zip(numbers.sliced(rank), numbers.window_dims, strict=True):
        within[dim] = position[of_window]
    return start, within


def has_batch_dimensions(op: Any) -> bool:
    """Returns whether a gather has batch dimensions, which the host cannot lower."""
    return bool(SliceNumbers.of(op).batching)


def gather(op: Any) -> list[Any]:
    """Builds a gather: reads each element of the result at its index, which is clamped to the operand."""
    numbers, (operand, indices) = SliceNumbers.of(op), op.operands
    sizes, shape = elements(op.attributes["slice_sizes"]), list(operand.type.shape)
    indices = stablehlo.convert(indices, stablehlo.i64())

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        starts, within = _parts(numbers, position, len(shape), indices)
        place = [
            index.add(index.clamped(start, whole - size), offset)
            for start, offset, whole, size in zip(starts, within, shape, sizes, strict=True)
        ]
        return [write(read_element(operand, place), carried[0], position)]

    result = op.results[0].type
    return nest(list(result.shape), [empty(result)], element)


def scatter(op: Any) -> list[Any]:
    """Builds a scatter: combines each element of the updates with the element at its index.

    A slice that is not entirely within the input is skipped, as in XLA; StableHLO's specification skips only the
    elements out of bounds. Partition rules rely on this: a part of such a slice may be within a shard.
    """
    numbers = SliceNumbers.of(op)
    count = len(op.results)
    inputs, updates = list(op.operands)[:count], list(op.operands)[count + 1 :]
    shape = list(inputs[0].type.shape)
    if 0 in shape or 0 in updates[0].type.shape:
        return inputs
    sizes = [1] * len(shape)
    for dim, of_window in zip(numbers.sliced(len(shape)), numbers.window_dims, strict=True):
        sizes[dim] = updates[0].type.shape[of_window]
    indices = stablehlo.convert(op.operands[count], stablehlo.i64())

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        starts, within = _parts(numbers, position, len(shape), indices)
        is_there = truth(True)
        for start, size, whole in zip(starts, sizes, shape, strict=True):
            is_there = both(is_there, index.within(start, whole - size + 1))
        place = [
            index.add(index.clamped(start, whole - size), offset)
            for start, offset, whole, size in zip(starts, within, shape, sizes, strict=True)
        ]
        old = [read_element(one, place) for one in carried]
        new = inlined(op.regions[0], [*old, *(read_element(one, position) for one in updates)])
        chosen = [
            boxed(index.choose(is_there, unboxed(after), unboxed(before)))
            for before, after in zip(old, new, strict=True)
        ]
        return [write(one, into, place) for one, into in zip(chosen, carried, strict=True)]

    return nest(list(updates[0].type.shape), inputs, element)


def select_and_scatter(op: Any) -> list[Any]:
    """Combines each element of the source with the element that its window selects, which is never padding."""
    operand, source, initial = op.operands
    shape = list(operand.type.shape)
    rank = len(shape)
    sizes, strides = (
        elements(op.attributes[name]) if name in op.attributes else [1] * rank
        for name in ("window_dimensions", "window_strides")
    )
    padding = elements(op.attributes["padding"])[::2] if "padding" in op.attributes else [0] * rank

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        has_one, _, *place = nest(
            sizes,
            [truth(False), unboxed(initial), *([index.constant(0)] * rank)],
            lambda offset, found: look(position, offset, found),
        )
        old = read_element(carried[0], place)
        (new,) = inlined(op.regions[1], [old, read_element(source, position)])
        chosen = index.choose(has_one, unboxed(new), unboxed(old))
        return [write(boxed(chosen), carried[0], place)]

    def look(position: list[Any], offset: list[Any], found: list[Any]) -> list[Any]:
        has_one, best, *place = found
        wanted = [
            index.subtract(index.add(index.multiply(one, index.constant(stride)), step), index.constant(before))
            for one, step, stride, before in zip(position, offset, strides, padding, strict=True)
        ]
        is_there = truth(True)
        for one, size in zip(wanted, shape, strict=True):
            is_there = both(is_there, index.within(one, size))
        near = [index.clamped(one, size - 1) for one, size in zip(wanted, shape, strict=True)]
        candidate = read_element(operand, near)
        (stays,) = inlined(op.regions[0], [boxed(best), candidate])
        is_better = negation(both(has_one, unboxed(stays)))
        is_taken = both(is_there, is_better)
        return [
            either(has_one, is_there),
            index.choose(is_taken, unboxed(candidate), best),
            *(index.choose(is_taken, one, other) for one, other in zip(near, place, strict=True)),
        ]

    result = stablehlo.broadcast(initial, shape)
    return result_of(result, source, shape, element)


def result_of(result: Any, source: Any, shape: list[int], element: NestBody) -> list[Any]:
    """Builds the loops over all elements of the source; returns `result` unchanged if it has no elements."""
    return [result] if 0 in shape else nest(list(source.type.shape), [result], element)


def is_cumulative(op: Any) -> bool:
    """Returns whether a windowed reduction is cumulative, such as a cumulative sum."""
    return cumulative_dim(op) is not None


def cumulative(op: Any) -> list[Any]:
    """Builds a cumulative reduction: combines each element with the previous result; narrow floats in f32."""
    dim = cumulative_dim(op)
    assert dim is not None
    (window,) = windows_along_dims(op)
    type_ = op.results[0].type
    narrow, wide = type_.element_type, stablehlo.tensor(_accumulated(type_.element_type))
    first = stablehlo.convert(op.operands[1], wide.element_type)
    size = type_.shape[dim]

    def step(position: list[Any], before: Any, into: Any) -> tuple[Any, Any]:
        here = stablehlo.convert(read_element(op.operands[0], position), wide.element_type)
        (now,) = apply_body(op, (before, here) if window.low else (here, before))
        return now, write(stablehlo.convert(now, narrow), into, position)

    def place(outer: list[Any], number: Any, inner: list[Any]) -> list[Any]:
        along = number if window.low else index.subtract(index.constant(size - 1), number)
        return [*outer, along, *inner]

    def line(outer: list[Any], carried: list[Any]) -> list[Any]:
        def at(number: Any, held: list[Any]) -> list[Any]:
            now, written = step(place(outer, number, []), boxed(held[0]), held[1])
            return [unboxed(now), written]

        return loop(index.constant(0), index.constant(size), [unboxed(first), *carried], at)[1:]

    def plane(outer: list[Any], carried: list[Any]) -> list[Any]:
        """Computes row by row, with the previous row in memory: the elements of a row are independent."""

        def row(number: Any, held: list[Any]) -> list[Any]:
            def at(inner: list[Any], now: list[Any]) -> list[Any]:
                sums, into = now
                combined, into = step(place(outer, number, inner), read_element(sums, inner), into)
                return [write(combined, sums, inner), into]

            return nest(type_.shape[dim + 1 :], held, at)

        start = stablehlo.broadcast(first, type_.shape[dim + 1 :])
        return loop(index.constant(0), index.constant(size), [start, *carried], row)[1:]

    if 0 in type_.shape:
        return [empty(type_)]
    return nest(type_.shape[:dim], [empty(type_)], line if dim == len(type_.shape) - 1 else plane)


def _accumulated(element_type: Any) -> Any:
    is_narrow = isinstance(element_type, host.ir.FloatType) and element_type.width < 32
    return host.ir.F32Type.get() if is_narrow else element_type
