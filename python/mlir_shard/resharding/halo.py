# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the shards of one dimension need of their neighbours' where an op moves elements along it.

Sizes are in elements. A shard of the result is a piece, `footprint` long, of a buffer that holds the shards of
`left_hops` neighbours, the own one and those of `right_hops`. The idea is Shardy's halo exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul


@dataclass(frozen=True, slots=True)
class Halo:
    """The exchange along one dimension: `starts[t]` is where in the buffer, before its first element by a negative
    number, the piece of shard t begins.
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
        """Whether every shard gets all shards, some over several hops: then to gather the dimension is simpler."""
        gathered = self.left_hops + self.right_hops + 1
        return gathered >= len(self.starts) and max(self.left_hops, self.right_hops) > 1


def halo_of_window(shards: int, size: int, result_size: int, low: int, dilation: int = 1) -> Halo:
    """For a dimension of `size` elements that are put `dilation` apart, with `low` elements before the first.

    Where `low` is negative that many are cut off. Elements beyond the last are whatever the buffer is padded with.
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
    """For a dimension of `size` elements, padded to `padded_size`, that a reshape splits in dimensions of `sizes`.

    These are in so many `shards` each, and what they hold has to be in one piece.
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
    """How far from a shard the shards are that hold the first and the last element of a span."""
    first, last = span
    if first > last:
        return _Hops(is_empty=True)
    return _Hops(max(0, shard - first // shard_size), max(0, last // shard_size - shard))


def _clipped(span: tuple[int, int], size: int) -> tuple[int, int]:
    return span[0], min(span[1], size - 1)
