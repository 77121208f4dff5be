# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting by merges of runs that double in length, which keeps the order of equal elements and never looks back."""

from __future__ import annotations

from typing import Any

from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.stablehlo_loops import loops


def sort(op: Any) -> list[Any]:
    """Sorts the operands together along a dimension, by the region of the operation."""
    shape = list(op.operands[0].type.shape)
    if not shape or 0 in shape:
        return list(op.operands)
    dim = op.attributes["dimension"].value % len(shape) if "dimension" in op.attributes else len(shape) - 1
    length, rest = shape[dim], [*shape[:dim], *shape[dim + 1 :]]
    if length == 1:
        return list(op.operands)
    end, last = index.constant(length), index.constant(length - 1)

    def merge(start: Any, run: Any, line: list[Any], sources: list[Any], targets: list[Any]) -> list[Any]:
        """Merges the run at `start` with the one behind it, in the line at a position in the other dimensions."""
        middle = index.least(index.add(start, run), end)
        stop = index.least(index.add(middle, run), end)

        def place(position: Any) -> list[Any]:
            return [*line[:dim], position, *line[dim:]]

        def step(target: Any, carried: list[Any]) -> list[Any]:
            left, right, *written = carried
            ahead, behind = (
                [loops.read(source, place(index.least(position, last))) for source in sources]
                for position in (left, right)
            )
            pairs = [one for pair in zip(behind, ahead, strict=True) for one in pair]
            (is_less,) = loops.inlined(op.regions[0], pairs)
            is_left_empty = index.reaches(left, middle)
            is_right_empty = index.reaches(right, stop)
            takes_right = loops.both(
                loops.negation(is_right_empty), loops.either(is_left_empty, loops.unboxed(is_less))
            )
            chosen = [
                loops.boxed(index.choose(takes_right, loops.unboxed(two), loops.unboxed(one)))
                for one, two in zip(ahead, behind, strict=True)
            ]
            written = [loops.write(one, into, place(target)) for one, into in zip(chosen, written, strict=True)]
            one = index.constant(1)
            return [
                index.choose(takes_right, left, index.add(left, one)),
                index.choose(takes_right, index.add(right, one), right),
                *written,
            ]

        return loops.loop(start, stop, [start, middle, *targets], step)[2:]

    def double(_: Any, carried: list[Any]) -> list[Any]:
        run, *sources = carried
        twice = index.add(run, run)
        targets = [loops.empty(source.type) for source in sources]

        def line(position: list[Any], held: list[Any]) -> list[Any]:
            return loops.loop(
                index.constant(0), end, held, lambda start, now: merge(start, run, position, sources, now), twice
            )

        return [twice, *loops.nest(rest, targets, line)]

    rounds = index.constant((length - 1).bit_length())
    return loops.loop(index.constant(0), rounds, [index.constant(1), *op.operands], double)[1:]
