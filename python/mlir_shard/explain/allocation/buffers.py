# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers with lifetimes: the most bytes that are live at once, and the memory that buffers can be packed into."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """The contents of a buffer."""

    ARGUMENT = auto()
    RESULT = auto()
    CONSTANT = auto()
    TEMPORARY = auto()
    COLLECTIVE = auto()


@dataclass(slots=True)
class Buffer:
    """Memory for `size` bytes that is in use from time `first` to time `last`, both included.

    `op` is the number of the operation whose result it holds, -1 for an argument, and `index` the number of the result;
    `rank` orders buffers of the same size.
    """

    size: int
    first: int
    last: int
    kind: Kind = Kind.TEMPORARY
    op: int = -1
    index: int = 0
    rank: int = 0


def most_live(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """Returns the most bytes that are live at a time, and the first such time; (0, 0) without buffers."""
    events: list[tuple[int, int]] = []
    for one in buffers:
        events.append((one.first, one.size))
        events.append((one.last + 1, -one.size))
    # At equal times, ends of lifetimes come first.
    events.sort()
    live = most = at = 0
    for time, change in events:
        live += change
        if live > most:
            most, at = live, time
    return most, at


def live_at(buffers: Sequence[Buffer], time: int) -> list[Buffer]:
    """Returns the buffers that are live at a time."""
    return [one for one in buffers if one.first <= time <= one.last]


_MOST_PLACED = 400


def packed_size(buffers: Sequence[Buffer], alignment: int) -> int:
    """Returns the size of the memory that holds all buffers, each at one offset.

    The largest buffers are placed first, each into the smallest sufficient gap between buffers that are live at the
    same time, as in XLA's heap. If there are many buffers, the smaller ones are assumed to fit into the gaps; the size
    is at least the most bytes that are live at once.
    """
    placed: list[tuple[int, int, int, int]] = []
    height, _ = most_live(buffers)
    for one in sorted(buffers, key=lambda one: (-one.size, one.first - one.last, one.first))[:_MOST_PLACED]:
        if not one.size:
            continue
        size = -(-one.size // alignment) * alignment
        end, best, offset = 0, -1, -1
        for start, stop, first, last in placed:
            if first > one.last or last < one.first:
                continue
            gap = start - end
            if gap >= size and (best < 0 or gap < best):
                best, offset = gap, end
            if stop > end:
                end = stop
        if offset < 0:
            offset = end
        insort(placed, (offset, offset + size, one.first, one.last))
        height = max(height, offset + one.size)
    return height


def into_results(temporaries: Sequence[Buffer], results: Sequence[Buffer]) -> list[Buffer]:
    """Returns the temporaries that XLA does not place in the memory of a later result.

    The largest temporaries are placed first, each into the smallest result of sufficient size that is free at the time.
    """
    held = [[one] for one in sorted(results, key=lambda one: one.size)]
    ordered = sorted(temporaries, key=lambda one: (-one.size, one.rank))
    left = ordered[_MOST_PLACED:]
    for one in ordered[:_MOST_PLACED]:
        for inside in held:
            if inside[0].size >= one.size and all(one.last < by.first or by.last < one.first for by in inside):
                inside.append(one)
                break
        else:
            left.append(one)
    return left
