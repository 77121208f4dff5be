# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows and halos: the elements of neighbours' shards that a device needs to compute its shard of a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul


@dataclass(frozen=True, slots=True)
class Halo:
    """The exchange along one dimension.

    `starts[t]` is the start of the piece of shard t in the buffer, negative if it is before the first element.
    """

    shard_size: int
    footprint: int
    left_hops: int
    right_hops: int
    starts: tuple[int, ...]
    dilation: int = 1
    needs_communication: bool = True

    @property
    def is_local_copy(self) -> bool:
        """Whether every shard of the result is the shard of the operand."""
        is_kept = self.footprint == self.shard_size and self.dilation == 1 and not any(self.starts)
        return is_kept and not self.needs_communication

    @property
    def gathers_everything(self) -> bool:
        """Whether every shard gets all shards, some over several hops; to gather the dimension is then simpler."""
        gathered = self.left_hops + self.right_hops + 1
        return gathered >= len(self.starts) and max(self.left_hops, self.right_hops) > 1


def halo_of_window(shards: int, size: int, result_size: int, low: int, dilation: int = 1) -> Halo:
    """Returns the halo of a dimension of `size` elements, `dilation` places apart, with `low` places before the first.

    If `low` is negative, that many places are cut off. Elements beyond the last one are those that pad the buffer.
    """
    shard_size = -(-size // shards)
    footprint = -(-result_size // shards)
    spans = []
    for shard in range(shards):
        begin = shard * footprint - low
        first = begin // dilation if begin >= 0 else -(-begin // dilation)
        spans.append((max(0, first), min(size - 1, first + footprint - 1)))
    hops = [_hops(shard, span, shard_size) for shard, span in enumerate(spans)]
    left = max(hop.left for hop in hops)
    starts = (shard * footprint - low + (left - shard) * shard_size * dilation for shard in range(shards))
    needs = any(hop.left or hop.right or hop.is_empty for hop in hops)
    return Halo(
        shard_size, footprint, left, max(hop.right for hop in hops), tuple(starts), dilation, needs_communication=needs
    )


def halo_of_split(size: int, padded_size: int, sizes: Sequence[int], shards: Sequence[int]) -> Halo:
    """Returns the halo of a dimension of `size` elements, padded to `padded_size`, that a reshape splits into `sizes`.

    The new dimensions have `shards` shards each, and the elements of a shard have to be contiguous.
    """
    count = prod(shards)
    shard_size = padded_size // count
    strides = list(accumulate(reversed(sizes[1:]), mul, initial=1))[::-1]
    spans = []
    for shard in range(count):
        begin, rest = 0, shard
        for dim in reversed(range(len(sizes))):
            begin += rest % shards[dim] * -(-sizes[dim] // shards[dim]) * strides[dim]
            rest //= shards[dim]
        spans.append((begin, begin + shard_size - 1))
    own = [_hops(shard, _clipped(span, size), shard_size) for shard, span in enumerate(spans)]
    left = max(hop.left for hop in own)
    starts = [begin + (left - shard) * shard_size for shard, (begin, _) in enumerate(spans)]
    needs = any(hop.left or hop.right for hop in own)
    return Halo(shard_size, shard_size, left, max(hop.right for hop in own), tuple(starts), needs_communication=needs)


@dataclass(frozen=True, slots=True)
class _Hops:
    left: int = 0
    right: int = 0
    is_empty: bool = False


def _hops(shard: int, span: tuple[int, int], shard_size: int) -> _Hops:
    """Returns the distances from a shard to the shards that hold the first and the last element of a span."""
    first, last = span
    if first > last:
        return _Hops(is_empty=True)
    return _Hops(max(0, shard - first // shard_size), max(0, last // shard_size - shard))


def _clipped(span: tuple[int, int], size: int) -> tuple[int, int]:
    return span[0], min(span[1], size - 1)


@dataclass(frozen=True, slots=True)
class WindowHalo:
    """A shard of `block` elements with the `below` elements before it and the `above` elements behind it.

    These may reach over several shards. Of all these elements, with `head` arbitrary ones in front and `tail` behind,
    the device with shard p takes `footprint` from `first + p * step` on, or from the nearest possible start if its
    shard of the result is empty.
    """

    block: int
    below: int
    above: int
    head: int
    tail: int
    first: int
    step: int
    footprint: int

    @property
    def last_start(self) -> int:
        """The last start from which there are enough elements."""
        return self.head + self.below + self.block + self.above + self.tail - self.footprint

    def starts_inside(self, blocks: int) -> bool:
        """Returns whether the start of every device is a possible one."""
        ends = self.first, self.first + (blocks - 1) * self.step
        return min(ends) >= 0 and max(ends) <= self.last_start

    def hops(self) -> Iterator[tuple[int, int, int]]:
        """Yields distances in shards, the nearest first, with the numbers of elements from that far below and above."""
        for hop in range(1, -(-max(self.below, self.above) // self.block) + 1):
            below, above = (min(self.block, max(0, size - (hop - 1) * self.block)) for size in (self.below, self.above))
            yield hop, below, above


def window_halo(
    size: int, result_size: int, blocks: int, stride: int, extent: int, offset: int = 0, dilation: int = 1
) -> WindowHalo | None:
    """Returns the halo of a dimension of `size` elements in `blocks` shards, for a result of `result_size` in as many.

    Elements are `dilation` places apart. Element i of the result needs the elements at `extent` places from place
    `offset + stride * i` on. Returns None if no elements are needed, if the halo reaches beyond the neighbours and is
    no smaller than all other shards, or if windows of different shards of the result are at different places between
    elements.
    """
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    moved, between = divmod(stride * result_block, dilation)
    start = -(-offset // dilation)
    footprint = _end(result_block - 1, stride, extent, offset, dilation) - start
    if not block or footprint < 1 or (between and blocks > 1):
        return None
    below = above = 0
    filled = -(-result_size // result_block) if result_size else 0
    for number in _corners(filled, (start, start - size, start + footprint, start + footprint - size), moved):
        last = min(result_size, (number + 1) * result_block) - 1
        begin = max(0, start + number * moved)
        end = min(size, _end(last, stride, extent, offset, dilation))
        if begin < end:
            below = max(below, number * block - begin)
            above = max(above, end - (number + 1) * block)
    if max(below, above) > block and below + above >= (blocks - 1) * block:
        return None
    first, step = below + start, moved - block
    starts = [first + number * step for number in ((0, filled - 1) if filled else ())]
    head = max(0, -min(starts, default=0))
    tail = max(0, max(starts, default=0) + footprint - (below + block + above))
    return WindowHalo(block, below, above, head, tail, first + head, step, footprint)


def _corners(count: int, starts: Iterable[int], step: int) -> set[int]:
    """Returns the numbers below `count` around which a function may not be linear: the first, the last two, as the last
    shard may be smaller, and those on both sides of the places where `start + number * step` becomes positive."""
    found = {0, count - 2, count - 1}
    for start in starts if step else ():
        zero = -start // step
        found |= {zero - 1, zero, zero + 1}
    return {number for number in found if 0 <= number < count}


def _end(element: int, stride: int, extent: int, offset: int, dilation: int) -> int:
    """Returns the first element behind the window of an element of the result."""
    return (offset + stride * element + extent - 1) // dilation + 1


@dataclass(frozen=True, slots=True)
class FactorWindow:
    """Windows along a factor over `size` elements of an operand, for `result_size` of the result, as in `window_halo`.

    If the operand `is_part` of the result, they are as in `part_halo`. If the windows are those of a scan, a device
    needs only one element of each other shard, its total.
    """

    factor: int
    operand: int
    size: int
    result_size: int
    stride: int
    extent: int
    offset: int = 0
    dilation: int = 1
    is_part: bool = False
    is_scan: bool = False

    def halo(self, blocks: int) -> WindowHalo | None:
        """Returns the halo of that many shards; None if `window_halo`, or `part_halo`, returns None."""
        if self.is_part:
            return part_halo(self.size, self.result_size, blocks, -self.offset)
        geometry = self.stride, self.extent, self.offset, self.dilation
        return window_halo(self.size, self.result_size, blocks, *geometry)

    def received(self, blocks: int) -> float:
        """Returns the amount that a device receives, in shards: all other shards without a halo."""
        if self.is_scan:
            return (blocks - 1) / max(1, -(-self.size // blocks))
        halo = self.halo(blocks)
        return blocks - 1 if halo is None else (halo.below + halo.above) / max(1, halo.block)


def part_halo(size: int, result_size: int, blocks: int, start: int) -> WindowHalo | None:
    """Returns the halo of an operand that is the part of a result from `start` on; all of it and the shard are used.

    Returns None if a device needs elements from beyond its neighbours.
    """
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    below = above = 0
    # The halo of a shard is linear in its index, except where the operand begins and ends in the result.
    begin, end_of_all = start // max(1, result_block), (size + start) // max(1, result_block)
    for number in {0, begin, begin + 1, end_of_all - 1, end_of_all, blocks - 1}:
        if not 0 <= number < blocks:
            continue
        first = max(0, number * result_block - start)
        end = min(size, (number + 1) * result_block - start)
        if first < end:
            below = max(below, number * block - first)
            above = max(above, end - (number + 1) * block)
    if max(below, above) > block or not block:
        return None
    return WindowHalo(block, below, above, head=0, tail=0, first=0, step=0, footprint=below + block + above)
