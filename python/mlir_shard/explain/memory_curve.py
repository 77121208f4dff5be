# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much is live over the course of a local program, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_shard.explain.allocation.buffers import Buffer, Kind
from mlir_shard.explain.places import Place


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """What is live at one of the operations of a local program, in bytes, besides arguments and constants.

    Attributes:
        values: of intermediate values and results; collectives: of what collectives receive and stage.
        op: the name of the operation; place: of it.
    """

    values: int
    collectives: int
    op: str
    place: Place


# Of values and of collectives, and the number of the operation.
_Live = tuple[int, int, int]


def memory_curve(
    buffers: Sequence[Buffer], shown: Callable[[int], tuple[str, Place]], *, always: int = 0, most: int = 2000
) -> list[MemoryPoint]:
    """Returns what is live at each operation for which something becomes live, in their order.

    Args:
        buffers: of the program; those without an operation are no points.
        shown: returns the name and the place of an operation by its number.
        always: bytes that are live from the beginning to the end.
        most: how many points are returned at most: of several in a row the one at which most is live.
    """
    begin = [(one.first, 1, one.size, one) for one in buffers]
    events = sorted([*begin, *((one.last + 1, 0, -one.size, one) for one in buffers)], key=lambda event: event[:2])
    points: list[_Live] = []
    live = {True: 0, False: always}
    for _, begins, size, one in events:
        live[one.kind is Kind.COLLECTIVE] += size
        if begins and one.op >= 0:
            point = (live[False], live[True], one.op)
            # What one operation makes becomes live together.
            if points and points[-1][2] == one.op:
                points[-1] = max(points[-1], point, key=_total)
            else:
                points.append(point)
    step = max(-(-len(points) // most), 1)
    kept = [max(points[at : at + step], key=_total) for at in range(0, len(points), step)]
    return [MemoryPoint(values, collectives, *shown(op)) for values, collectives, op in kept]


def _total(point: _Live) -> int:
    return point[0] + point[1]
