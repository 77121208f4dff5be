# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The communication of one collective of a local program: the bytes that devices receive, and its seconds.

Both agree with `link_times` and `step_traffic`, for collectives of which only groups and local tensors are known.
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
    """A mesh axis of a group of devices, and the number of devices along it; "" if only the group's size is known."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Received:
    """The bytes that one group receives: the device that receives most, and all of them."""

    most: int
    total: int


@dataclass(frozen=True, slots=True)
class Communication:
    """A collective in groups of devices, on local tensors. Tensors that go in together are one message.

    Attributes:
        kind: the collective.
        axes: the mesh axes that each group is along.
        groups: the number of groups.
        operand_bytes: the bytes of all operands of one device.
        result_bytes: the bytes of all results of one device.
        element_bytes: the bytes of an element.
        received: the bytes received, if they do not follow from sizes: of permutations and exchanges of halos.
        messages: the number of successive messages of these.
        receivers: for each device whether it receives anything, None if all do.
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
        """The number of devices of a group."""
        return prod(axis.size for axis in self.axes)

    @property
    def bytes_received(self) -> int:
        """The bytes received by the device that receives most."""
        return self._received().most

    @property
    def total_bytes(self) -> int:
        """The bytes received by all devices."""
        return self.groups * self._received().total

    def time(self, link: Callable[[str], Link]) -> float:
        """Returns the seconds of the collective, see `link_times`; `link` returns the link along an axis by name."""
        links = self._links(link)
        if not links or not self._received().total:
            return 0.0
        return self.latency(link) + self.bytes_received / min(one.bandwidth for one, _ in links)

    def latency(self, link: Callable[[str], Link]) -> float:
        """Returns the part of the seconds that does not depend on the size of the tensors. See `link_times`."""
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
        """Returns the links along axes with several devices, and the number of devices along each."""
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
        # All other devices receive the tensor of one device, or a part of it.
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
