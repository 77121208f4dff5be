# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one collective of a local program communicates: the bytes that devices receive, and the time that takes.

Both are those of `link_times` and `step_traffic`, for collectives whose groups and local tensors are all that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import prod

from mlir_shard.resharding.cost.links import Link, num_ring_messages


class CollectiveKind(Enum):
    """The collectives, as their operations are called."""

    ALL_GATHER = "all_gather"
    ALL_REDUCE = "all_reduce"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    COLLECTIVE_PERMUTE = "collective_permute"
    GATHER = "gather"
    HALO_EXCHANGE = "halo_exchange"
    RECV = "recv"
    REDUCE = "reduce"
    REDUCE_SCATTER = "reduce_scatter"
    SCATTER = "scatter"


@dataclass(frozen=True, slots=True)
class GroupAxis:
    """A mesh axis that a group of devices is along, and how many there are; "" where only the group's size is known."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that one group receives: the device of it that receives most, and all of them."""

    most: int
    total: int


@dataclass(frozen=True, slots=True)
class Communication:
    """A collective in groups of devices, on local tensors. Tensors that go in together are one message.

    Attributes:
        kind: the collective.
        axes: the mesh axes that each group is along.
        groups: how many groups there are.
        operand_bytes: of each local tensor that goes in.
        result_bytes: of each local tensor that comes out.
        element_bytes: of an element.
        received: the bytes received, where they do not follow from sizes: of permutations and exchanges of halos.
        messages: of these, one after the other.
        receivers: for each device whether it receives anything, None where all do.
    """

    kind: CollectiveKind
    axes: tuple[GroupAxis, ...]
    groups: int
    operand_bytes: int
    result_bytes: int
    element_bytes: int = 1
    received: Received | None = None
    messages: int = 1
    receivers: tuple[bool, ...] | None = None

    @property
    def group_size(self) -> int:
        """The devices of a group."""
        return prod(axis.size for axis in self.axes)

    @property
    def bytes_received(self) -> int:
        """By the device that receives most."""
        return self._received().most

    @property
    def total_bytes(self) -> int:
        """Received by all devices."""
        return self.groups * self._received().total

    def time(self, link: Callable[[str], Link]) -> float:
        """Seconds, where `link` is that along an axis of a name; see `link_times`."""
        links = self._links(link)
        if not links or not self._received().total:
            return 0.0
        return self.latency(link) + self.bytes_received / min(one.bandwidth for one, _ in links)

    def latency(self, link: Callable[[str], Link]) -> float:
        """The seconds of it that it takes whatever the size of its tensors; see `link_times`."""
        links = self._links(link)
        if not links or not self._received().total:
            return 0.0
        ring = sum(num_ring_messages(size) * one.latency for one, size in links)
        longest = max(one.latency for one, _ in links)
        if self.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE):
            return 2 * ring
        if self.kind in _RINGS:
            return ring
        return longest * (self.group_size - 1 if self.kind is CollectiveKind.ALL_TO_ALL else self.messages)

    def _links(self, link: Callable[[str], Link]) -> list[tuple[Link, int]]:
        """Those along the axes that have several devices, and how many."""
        return [(link(axis.name), axis.size) for axis in self.axes if axis.size > 1]

    def _received(self) -> Received:
        if self.received is not None:
            return self.received
        size, operand, result = self.group_size, self.operand_bytes, self.result_bytes
        if self.kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE):
            own = -(-operand // (size * self.element_bytes)) * self.element_bytes
            reduced, rest = own * (size - 1), operand - own
            all_have_rest = self.kind is CollectiveKind.ALL_REDUCE
            return Received(reduced + rest, size * reduced + (size if all_have_rest else 1) * rest)
        if self.kind is CollectiveKind.ALL_GATHER:
            return _everyone(result - operand, size)
        if self.kind is CollectiveKind.REDUCE_SCATTER:
            return _everyone(result * (size - 1), size)
        if self.kind is CollectiveKind.ALL_TO_ALL:
            return _everyone(operand * (size - 1) // size, size)
        if self.kind is CollectiveKind.GATHER:
            return Received(operand * (size - 1), operand * (size - 1))
        if self.kind is CollectiveKind.RECV:
            return Received(result, result)
        # One device has what all others are to have: its tensor, or a part of it.
        return Received(result if size > 1 else 0, result * (size - 1))


_RINGS = frozenset(
    {
        CollectiveKind.ALL_GATHER,
        CollectiveKind.BROADCAST,
        CollectiveKind.GATHER,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.SCATTER,
    }
)


def _everyone(received: int, size: int) -> Received:
    return Received(received, received * size)
