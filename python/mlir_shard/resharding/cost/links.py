# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seconds that collectives take on the links along mesh axes, and that ops take on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from mlir_shard.resharding.grid import prime_factors
from mlir_shard.resharding.steps import GridAxes, Placement

if TYPE_CHECKING:
    from mlir_shard.resharding.cost.block_arrays import Dims
    from mlir_shard.resharding.grid import Grid


@dataclass(frozen=True, slots=True)
class Link:
    """The seconds until a message begins to arrive, and the bytes per second that a device receives.

    Raises ValueError unless the latency is finite and not negative, and the bandwidth finite and positive.
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not (isfinite(self.latency) and self.latency >= 0):
            raise ValueError(f"a latency must be a number of seconds, at least 0, got {self.latency}")
        if not (isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"a bandwidth must be a positive number of bytes per second, got {self.bandwidth}")


DEFAULT_LINK = Link(latency=1e-6, bandwidth=1e11)
"""A microsecond and 100 GB/s: the order of links between accelerators within a machine or a pod."""


class LinkTimes:
    """Times on a grid whose axes have the links of their mesh axes."""

    def __init__(self, grid: Grid, link: Callable[[str], Link]) -> None:
        self._names = tuple(atom.name for atom in grid.atoms)
        self._links = tuple(map(link, self._names))
        self._sizes = grid.sizes
        several = {link for link, size in zip(self._links, self._sizes, strict=True) if size > 1}
        self._only_link = several.pop() if len(several) == 1 else None
        self.ring_latency = cache(self._ring_latency)
        self.latency = cache(self._latency)
        self.seconds_per_byte = cache(self._seconds_per_byte)

    def ring(self, axes: GridAxes, num_bytes: int) -> float:
        """Returns the seconds of an all-gather or a reduce-scatter."""
        return self.ring_latency(axes) + num_bytes * self.seconds_per_byte(axes)

    def messages(self, axes: GridAxes, count: int, num_bytes: int) -> float:
        """Returns the seconds of `count` messages, one after the other."""
        return count * self.latency(axes) + num_bytes * self.seconds_per_byte(axes)

    def messages_between(self, before: Dims, after: Dims, count: int, num_bytes: int) -> float:
        """Returns the seconds of `count` successive messages along the axes that a change of the axes involves."""
        if self._only_link is not None and before != after:
            return count * self._only_link.latency + num_bytes * (1 / self._only_link.bandwidth)
        return self.messages(axes_between(Placement(before), Placement(after)), count, num_bytes)

    def _ring_latency(self, axes: GridAxes) -> float:
        return sum(num_ring_messages(self._sizes[axis]) * self._links[axis].latency for axis in axes)

    def _latency(self, axes: GridAxes) -> float:
        return max((self._links[axis].latency for axis in axes if self._sizes[axis] > 1), default=0.0)

    def _seconds_per_byte(self, axes: GridAxes) -> float:
        return max((1 / self._links[axis].bandwidth for axis in axes if self._sizes[axis] > 1), default=0.0)

    @property
    def least_latency(self) -> float:
        """The latency of the fastest link along which there are several devices."""
        return min((link.latency for link, size in zip(self._links, self._sizes, strict=True) if size > 1), default=0.0)

    @property
    def least_seconds_per_byte(self) -> float:
        """The seconds per byte of the fastest link along which there are several devices."""
        several = (link for link, size in zip(self._links, self._sizes, strict=True) if size > 1)
        return min((1 / link.bandwidth for link in several), default=0.0)


@lru_cache(maxsize=256)
def link_times(grid: Grid, link: Callable[[str], Link]) -> LinkTimes:
    """Returns the times on a grid, the same object for the same links."""
    return LinkTimes(grid, link)


@cache
def num_ring_messages(count: int) -> int:
    """Returns the number of successive messages of rings along the prime factors of `count`, which is at least 1."""
    return sum(factor - 1 for factor in prime_factors(count))


def axes_between(before: Placement, after: Placement) -> GridAxes:
    """Returns the axes along which a move between two placements may exchange data, sorted.

    They are the axes of either placement, except the major-most axes of each dimension that both share, and except axes
    of partial values that stay.
    """
    found: set[int] = set(before.unreduced) - set(after.unreduced)
    for old, new in zip(before.dims, after.dims, strict=True):
        if old != new:
            common = common_length(old, new)
            found.update(old[common:], new[common:])
    return tuple(sorted(found))


def common_length(one: GridAxes, other: GridAxes) -> int:
    """Returns the number of axes that both begin with."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """The rates of a device per second: operations, bytes of its memory, and the most bytes that it receives.

    Raises ValueError unless all are finite and positive.
    """

    operations: float = 1e14
    memory: float = 1e12
    network: float = DEFAULT_LINK.bandwidth

    def __post_init__(self) -> None:
        for what, rate in (("operations", self.operations), ("memory", self.memory), ("network", self.network)):
            if not (isfinite(rate) and rate > 0):
                raise ValueError(f"{what}: expected a positive number per second, got {rate}")

    def seconds(self, operations: int, num_bytes: int) -> float:
        """Returns the seconds that a device takes for `operations` operations on `num_bytes` bytes.

        It is the longer of the two times, as in the roofline model (Williams, Waterman, Patterson 2009).
        """
        return max(operations / self.operations, num_bytes / self.memory)
