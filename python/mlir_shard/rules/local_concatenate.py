# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The partition rule of StableHLO's concatenate: a device puts its block together of what is near in its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.host import ir
from mlir_shard.rules.local_results import drop_shardings
from mlir_shard.rules.partition import Blocks, partition_rule, set_result_types


@dataclass(frozen=True, slots=True)
class Part:
    """What a device has of an operand that is the part of a result from `start` on.

    The device of block p has its elements from `p * step - below` on.
    """

    value: Any
    start: int
    step: int
    below: int


@partition_rule("stablehlo.concatenate", allows_uneven=True)
def concatenate(op: Any, blocks: Blocks) -> None:
    """The same of blocks, but along its dimension, where a caller has brought each device what is near."""
    dim = op.attributes["dimension"].value
    if not blocks.windows:
        set_result_types(op, blocks)
        return
    result = blocks.results[0]
    windows = {window.operand: window for window in blocks.windows}
    parts: list[Part] = []
    start = 0
    for number, value in enumerate(op.operands):
        window = windows.get(number)
        halo = None if window is None else window.halo(result.counts[dim])
        step, below = (0, 0) if halo is None else (halo.block, halo.below)
        parts.append(Part(value, start, step, below))
        start += blocks.operand_size(number, dim) if window is None else window.size
    with ir.InsertionPoint(op), op.location:
        size = result.block_shape[dim]

        def place(of_block: Callable[[int], int]) -> Any:
            return stablehlo.reshape(blocks.entry(result.axes[dim], of_block, None), ())

        value = joined_parts(parts, dim, size, place)
    drop_shardings(op)
    # Nothing uses the op itself any more.
    whole = list(value.type.shape)
    whole[dim] = sum(part.value.type.shape[dim] for part in parts)
    op.results[0].set_type(stablehlo.with_shape(value.type, whole))
    op.results[0].replace_all_uses_with(value)


def joined_parts(parts: Sequence[Part], dim: int, size: int, place: Callable[[Callable[[int], int]], Any]) -> Any:
    """The block, of `size` elements, of what parts make one behind the other, at the current insertion point.

    `place` gives a scalar of i64: what a function is of the number of this device's block.
    """
    begin = place(lambda number: number * size)
    chosen = None
    for part in parts:
        value = _at_block(part, dim, size, place)
        if chosen is None:
            chosen = value
            continue
        type_ = stablehlo.tensor(stablehlo.i64(), *value.type.shape)
        positions = stablehlo.build("iota", type_, iota_dimension=stablehlo.integer(dim))
        first = stablehlo.build("subtract", begin.type, stablehlo.splat(begin.type, part.start), begin)
        first = stablehlo.broadcast(first, value.type.shape)
        chosen = stablehlo.select(stablehlo.compare("GE", positions, first), value, chosen)
    return chosen


def _at_block(part: Part, dim: int, size: int, place: Callable[[Callable[[int], int]], Any]) -> Any:
    """A block, with the elements of a part where they are in it."""
    rank, own = part.value.type.rank, part.value.type.shape[dim]
    room = [size if one == dim else 0 for one in range(rank)]
    zero = stablehlo.splat(stablehlo.tensor(part.value.type.element_type), 0)
    padded = stablehlo.pad(part.value, zero, room, room, [0] * rank)

    def start(number: int) -> int:
        # Where nothing is in the block, it is all the same what is there.
        wanted = number * size - part.start - (number * part.step - part.below) + size
        return min(max(wanted, 0), own + size)

    origin = stablehlo.splat(stablehlo.tensor(stablehlo.i64()), 0)
    starts = [place(start) if one == dim else origin for one in range(rank)]
    shape = [size if one == dim else other for one, other in enumerate(part.value.type.shape)]
    return stablehlo.dynamic_slice(padded, starts, shape)
