# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a window selects, and is scattered to."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.stablehlo_loops import loops


def select_and_scatter(op: Any) -> list[Any]:
    """Each element of the source is combined with that which its window selects; padding is never selected."""
    operand, source, initial = op.operands
    shape = list(operand.type.shape)
    rank = len(shape)
    sizes, strides = (
        list(op.attributes[name]) if name in op.attributes else [1] * rank
        for name in ("window_dimensions", "window_strides")
    )
    padding = list(op.attributes["padding"])[::2] if "padding" in op.attributes else [0] * rank

    def element(position: list[Any], carried: list[Any]) -> list[Any]:
        has_one, _, *place = loops.nest(
            sizes,
            [loops.truth(False), loops.unboxed(initial), *([index.constant(0)] * rank)],
            lambda offset, found: look(position, offset, found),
        )
        old = loops.read(carried[0], place)
        (new,) = loops.inlined(op.regions[1], [old, loops.read(source, position)])
        chosen = index.choose(has_one, loops.unboxed(new), loops.unboxed(old))
        return [loops.write(loops.boxed(chosen), carried[0], place)]

    def look(position: list[Any], offset: list[Any], found: list[Any]) -> list[Any]:
        has_one, best, *place = found
        wanted = [
            index.subtract(index.add(index.multiply(one, index.constant(stride)), step), index.constant(before))
            for one, step, stride, before in zip(position, offset, strides, padding, strict=True)
        ]
        is_there = loops.truth(True)
        for one, size in zip(wanted, shape, strict=True):
            is_there = loops.both(is_there, index.within(one, size))
        near = [index.clamped(one, size - 1) for one, size in zip(wanted, shape, strict=True)]
        candidate = loops.read(operand, near)
        (stays,) = loops.inlined(op.regions[0], [loops.boxed(best), candidate])
        is_better = loops.negation(loops.both(has_one, loops.unboxed(stays)))
        is_taken = loops.both(is_there, is_better)
        return [
            loops.either(has_one, is_there),
            index.choose(is_taken, loops.unboxed(candidate), best),
            *(index.choose(is_taken, one, other) for one, other in zip(near, place, strict=True)),
        ]

    result = stablehlo.broadcast(initial, shape)
    return result_of(result, source, shape, element)


def result_of(result: Any, source: Any, shape: list[int], element: loops.NestBody) -> list[Any]:
    """The result after all elements of the source; one without elements stays as it is."""
    return [result] if 0 in shape else loops.nest(list(source.type.shape), [result], element)
