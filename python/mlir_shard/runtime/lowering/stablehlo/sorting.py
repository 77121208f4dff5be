# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites sorts of StableHLO to loops over elements, which are stable sorts.

A sort merges runs of doubling length. If only the first few elements are used, as of `chlo.top_k`, they are selected
by insertion.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import stablehlo
from mlir_shard.runtime.lowering.stablehlo.element_loops import (
    both,
    boxed,
    either,
    empty,
    inlined,
    loop,
    negation,
    nest,
    read_element,
    unboxed,
    write,
)

_scf = host.dialect("scf")
# The first k of n elements of a line are selected by insertion if k * k / n is at most this; otherwise it is sorted.
_SELECTED = 4


def sort(op: Any) -> list[Any]:
    """Sorts the operands together along a dimension, by the region of the operation."""
    shape = list(op.operands[0].type.shape)
    if not shape or 0 in shape:
        return list(op.operands)
    dim = op.attributes["dimension"].value % len(shape) if "dimension" in op.attributes else len(shape) - 1
    length, rest = shape[dim], [*shape[:dim], *shape[dim + 1 :]]
    if length == 1:
        return list(op.operands)
    count = _count_of_first(op, dim)
    if count is not None and count * count <= _SELECTED * length and count <= length // 2:
        for result, first in zip(op.results, _first(op, dim, count), strict=True):
            for use in list(result.uses):
                use.owner.operands[0] = first
        return list(op.operands)
    end, last = index.constant(length), index.constant(length - 1)

    def merge(start: Any, run: Any, line: list[Any], sources: list[Any], targets: list[Any]) -> list[Any]:
        """Merges the run at `start` with the next run, in the line at a position in the other dimensions."""
        middle = index.least(index.add(start, run), end)
        stop = index.least(index.add(middle, run), end)

        def place(position: Any) -> list[Any]:
            return [*line[:dim], position, *line[dim:]]

        def step(target: Any, carried: list[Any]) -> list[Any]:
            left, right, *written = carried
            ahead, behind = (
                [read_element(source, place(index.least(position, last))) for source in sources]
                for position in (left, right)
            )
            pairs = [one for pair in zip(behind, ahead, strict=True) for one in pair]
            (is_less,) = inlined(op.regions[0], pairs)
            is_left_empty = index.reaches(left, middle)
            is_right_empty = index.reaches(right, stop)
            takes_right = both(
                negation(is_right_empty),
                either(is_left_empty, unboxed(is_less)),
            )
            chosen = [
                boxed(index.choose(takes_right, unboxed(two), unboxed(one)))
                for one, two in zip(ahead, behind, strict=True)
            ]
            written = [write(one, into, place(target)) for one, into in zip(chosen, written, strict=True)]
            one = index.constant(1)
            return [
                index.choose(takes_right, left, index.add(left, one)),
                index.choose(takes_right, index.add(right, one), right),
                *written,
            ]

        return loop(start, stop, [start, middle, *targets], step)[2:]

    def double(_: Any, carried: list[Any]) -> list[Any]:
        run, *sources = carried
        twice = index.add(run, run)
        targets = [empty(source.type) for source in sources]

        def line(position: list[Any], held: list[Any]) -> list[Any]:
            return loop(
                index.constant(0), end, held, lambda start, now: merge(start, run, position, sources, now), twice
            )

        return [twice, *nest(rest, targets, line)]

    rounds = index.constant((length - 1).bit_length())
    return loop(index.constant(0), rounds, [index.constant(1), *op.operands], double)[1:]


def _count_of_first(op: Any, dim: int) -> int | None:
    """Returns the number of first elements along a dimension that slices of the results use; None for other uses."""
    count = 0
    for use in (use for result in op.results for use in result.uses):
        if use.owner.name != "stablehlo.slice":
            return None
        count = max(count, use.owner.operation.attributes["limit_indices"][dim])
    return count


def _first(op: Any, dim: int, count: int) -> list[Any]:
    """Returns the first elements of a sort along a dimension: inserts each element into the sorted previous ones."""
    shape = list(op.operands[0].type.shape)
    sources, one, room = list(op.operands), index.constant(1), index.constant(count)

    def insert(new: list[Any], place: Any, ordered: list[Any]) -> list[Any]:
        """Inserts a new element and moves the greater ones by one position; the additional last one is not read."""
        made = host.ir.Operation.create(
            "scf.while", [value.type for value in (place, *ordered)], [place, *ordered], regions=2
        )
        locations = [host.ir.Location.current] * (1 + len(ordered))
        before, after = (
            region.blocks.append(*(one.type for one in made.results), arg_locs=locations) for region in made.regions
        )
        with host.ir.InsertionPoint(before):
            at, *held = before.arguments
            nearest = [read_element(values, [index.clamped(index.subtract(at, one), count)]) for values in held]
            (is_less,) = inlined(op.regions[0], [each for pair in zip(new, nearest, strict=True) for each in pair])
            has_more = negation(index.equal(at, index.constant(0)))
            _scf.ConditionOp(both(has_more, unboxed(is_less)), list(before.arguments))
        with host.ir.InsertionPoint(after):
            at, *held = after.arguments
            behind = index.subtract(at, one)
            held = [write(read_element(values, [behind]), values, [at]) for values in held]
            _scf.YieldOp([behind, *held])
        place, *ordered = made.results
        return [write(each, into, [place]) for each, into in zip(new, ordered, strict=True)]

    def line(position: list[Any], carried: list[Any]) -> list[Any]:
        def along(number: Any) -> list[Any]:
            return [*position[:dim], number, *position[dim:]]

        def consider(number: Any, ordered: list[Any]) -> list[Any]:
            return insert([read_element(one, along(number)) for one in sources], index.least(number, room), ordered)

        def copy(number: Any, into: list[Any]) -> list[Any]:
            elements = [read_element(one, [number]) for one in ordered]
            return [write(each, one, along(number)) for each, one in zip(elements, into, strict=True)]

        results, ordered = carried[: len(sources)], carried[len(sources) :]
        ordered = loop(index.constant(0), index.constant(shape[dim]), ordered, consider)
        return [*loop(index.constant(0), room, results, copy), *ordered]

    results = [empty(stablehlo.with_size(one.type, dim, count)) for one in sources]
    ordered = [empty(stablehlo.with_shape(one.type, [count + 1])) for one in sources]
    return nest([*shape[:dim], *shape[dim + 1 :]], [*results, *ordered], line)[: len(sources)]
