# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of the variables of a node: those in which it is known, and those that a reduction has to cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.check.kernel.kinds import NEUTRAL, ZEROS
from mlir_shard.check.lemmas.indices import Bound
from mlir_shard.check.lemmas.values import Node


@dataclass(frozen=True, slots=True)
class Access:
    """A read of a node: for each dimension of the node an offset, and the stride of each variable that occurs."""

    node: Node
    offsets: tuple[int, ...]
    strides: tuple[Mapping[int, int], ...]

    def from_(self, variable: int, low: int) -> Access:
        """Returns the access with a variable that is counted from `low` on."""
        starts = (at + of.get(variable, 0) * low for at, of in zip(self.offsets, self.strides, strict=True))
        return replace(self, offsets=tuple(starts))

    def along(self, variable: int) -> list[tuple[Bound, int, int]]:
        """Returns the bounds, offset and stride of the dimensions that depend on a variable alone."""
        every = zip(self.node.bounds, self.offsets, self.strides, strict=True)
        return [(bound, start, of[variable]) for bound, start, of in every if list(of) == [variable]]


def valid(at: int, count: int, reads: Sequence[Access]) -> tuple[int, int]:
    """Returns the range of a variable in which all reads that depend on it alone are in bounds."""
    low, high = 0, count
    for (first, last), start, stride in (one for read in reads for one in read.along(at)):
        if stride < 0:
            first, last = None if last is None else 1 - last, None if first is None else 1 - first
            start, stride = -start, -stride
        if first is not None:
            low = max(low, -((start - first) // stride))
        if last is not None:
            high = min(high, -((start - last) // stride))
    return low, high


def relevant(at: int, count: int, kind: str, op: tuple[Any, ...], reads: Sequence[Access]) -> tuple[int, int]:
    """Returns the range of a variable that may change a reduction; neutral elements beyond the end are left out."""
    if op[0] == "lookup":
        return _looked_up(at, count, reads)
    ranges = set[tuple[int, int]]()
    neutral = NEUTRAL.get(kind, ()) if op == ("identity",) else ZEROS if op[0] == "product" and kind == "add" else ()
    for read in reads:
        for dim, (start, of) in enumerate(zip(read.offsets, read.strides, strict=True)):
            if at not in of:
                continue
            if read.node.op[0] != "extended" or read.node.op[1] not in neutral or of != {at: 1}:
                return 0, count
            first, last = read.node.reads[0][0].bounds[dim]
            low, high = read.node.op[2][dim]
            begin = max(0, first - start) if low and first is not None else 0
            end = min(count, last - start) if high and last is not None else count
            ranges.add((begin, end))
    return ranges.pop() if len(ranges) == 1 else (0, count)


def _looked_up(at: int, count: int, reads: Sequence[Access]) -> tuple[int, int]:
    """Returns the range of a variable in which a lookup may match: its index is clamped to the bounds of the node."""
    half = (len(reads) - 1) // 2
    for looked_for, place in zip(reads[1 : 1 + half], reads[1 + half :], strict=True):
        if place.strides[0] != {at: 1} or looked_for.node.op[0] != "clamped":
            continue
        low, high, start = int(looked_for.node.op[2]), int(looked_for.node.op[3]), place.offsets[0]
        for (first, last), offset, stride in reads[0].along(at):
            # The index is clamped between `low` and `high`; the elements there have to be in bounds.
            if stride == 1 and first is not None and last is not None:
                shift = offset - start
                if low + shift >= first and high + shift < last:
                    return max(0, low - start), min(count, high + 1 - start)
    return 0, count
