# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of the variables of a node: where it is known, and over which a reduction has to go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard.check.values import NEUTRAL, ZEROS, Read


def valid(
    at: int,
    count: int,
    reads: Sequence[Read],
    rows: Sequence[Sequence[Mapping[int, int]]],
    offsets: Sequence[Sequence[int]],
) -> tuple[int, int]:
    """Where all reads that depend on one variable alone are in bounds."""
    low, high = 0, count
    for (node, _), row, offset in zip(reads, rows, offsets, strict=True):
        for (first, last), of, start in zip(node.bounds, row, offset, strict=True):
            if list(of) != [at]:
                continue
            stride = of[at]
            least, most = (
                (first, last)
                if stride > 0
                else (
                    None if last is None else 1 - last,
                    None if first is None else 1 - first,
                )
            )
            begin, step = (start, stride) if stride > 0 else (-start, -stride)
            if least is not None:
                low = max(low, -((begin - least) // step))
            if most is not None:
                high = min(high, -((begin - most) // step))
    return low, high


def relevant(
    at: int,
    count: int,
    kind: str,
    op: tuple[Any, ...],
    reads: Sequence[Read],
    rows: Sequence[Sequence[Mapping[int, int]]],
    offsets: Sequence[Sequence[int]],
) -> tuple[int, int]:
    """Where a reduction reads what may change it: elements that are neutral behind the end are left out."""
    if op[0] == "lookup":
        return _looked_up(at, count, reads, rows, offsets)
    ranges = set[tuple[int, int]]()
    neutral = NEUTRAL.get(kind, ()) if op == ("identity",) else ZEROS if op[0] == "product" and kind == "add" else ()
    for (node, _), row, offset in zip(reads, rows, offsets, strict=True):
        for dim, (of, start) in enumerate(zip(row, offset, strict=True)):
            if at not in of:
                continue
            if node.op[0] != "extended" or node.op[1] not in neutral or of != {at: 1}:
                return 0, count
            first, last = node.reads[0][0].bounds[dim]
            low, high = node.op[2][dim]
            begin = max(0, first - start) if low and first is not None else 0
            end = min(count, last - start) if high and last is not None else count
            ranges.add((begin, end))
    return ranges.pop() if len(ranges) == 1 else (0, count)


def _looked_up(
    at: int,
    count: int,
    reads: Sequence[Read],
    rows: Sequence[Sequence[Mapping[int, int]]],
    offsets: Sequence[Sequence[int]],
) -> tuple[int, int]:
    """Where a lookup may find what it looks for: what it looks for is clamped to the bounds of what it reads."""
    half = (len(reads) - 1) // 2
    for number in range(1, 1 + half):
        of, start = rows[number + half][0], offsets[number + half][0]
        node = reads[number][0]
        if of != {at: 1} or node.op[0] != "clamped":
            continue
        low, high = int(node.op[2]), int(node.op[3])
        for (first, last), own, offset in zip(reads[0][0].bounds, rows[0], offsets[0], strict=True):
            if own == {at: 1} and first is not None and last is not None:
                # The position is looked for from `low` to `high`; the element there has to be in bounds.
                shift = offset - start
                if low + shift >= first and high + shift < last:
                    return max(0, low - start), min(count, high + 1 - start)
    return 0, count
