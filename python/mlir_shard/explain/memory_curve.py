# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The live memory at each operation of a local program, in program order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_shard.explain.allocation.buffers import Buffer, Kind
from mlir_shard.explain.places import Place


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """The bytes that are live at one of the operations of a local program, besides arguments and constants.

    Attributes:
        values: the bytes of intermediate values and results; collectives: those that collectives receive and stage.
        op: the name of the operation; place: the place of the operation.
    """

    values: int
    collectives: int
    op: str
    place: Place


# The bytes of values and of collectives, and the number of the operation.
_Live = tuple[int, int, int]


def memory_curve(
    buffers: Sequence[Buffer], shown: Callable[[int], tuple[str, Place]], *, always: int = 0, most: int = 2000
) -> list[MemoryPoint]:
    """Returns the live bytes at each operation with a buffer that becomes live, in order.

    Args:
        buffers: the buffers of the program; those without an operation give no points.
        shown: returns the name and the place of an operation by its number.
        always: bytes that are live from the beginning to the end.
        most: the most points to return; of several consecutive points, the one with the most live bytes is kept.
    """
    begin = [(one.first, 1, one.size, one) for one in buffers]
    events = sorted([*begin, *((one.last + 1, 0, -one.size, one) for one in buffers)], key=lambda event: event[:2])
    points: list[_Live] = []
    live = {True: 0, False: always}
    for _, begins, size, one in events:
        live[one.kind is Kind.COLLECTIVE] += size
        if begins and one.op >= 0:
            point = (live[False], live[True], one.op)
            # The buffers of one operation become live together.
            if points and points[-1][2] == one.op:
                points[-1] = max(points[-1], point, key=_total)
            else:
                points.append(point)
    step = max(-(-len(points) // most), 1)
    kept = [max(points[at : at + step], key=_total) for at in range(0, len(points), step)]
    return [MemoryPoint(values, collectives, *shown(op)) for values, collectives, op in kept]


def _total(point: _Live) -> int:
    return point[0] + point[1]
