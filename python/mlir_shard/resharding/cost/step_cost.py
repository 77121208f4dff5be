# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of a move: the elements that each device sends and receives, the time, and the memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mlir_shard.resharding import steps
from mlir_shard.resharding.cost.block_arrays import Dims
from mlir_shard.resharding.cost.links import LinkTimes, axes_between
from mlir_shard.resharding.cost.traffic import Traffic, traffic_on
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    GridAxes,
    Move,
    Placement,
    ReduceScatter,
    Together,
)


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """The elements or bytes that each device receives and sends, in the order of the mesh.

    Collectives move local tensors with their padding: the same for all devices, or in a permutation for all but fixed
    points. In an all-reduce among p devices each receives p - 1 values for each element of the part that it reduces, a
    pth of all, and then the other parts, as bandwidth-optimal algorithms do.
    """

    received: tuple[int, ...]
    sent: tuple[int, ...]

    def in_bytes(self, element_size: int) -> StepTraffic:
        """Returns the traffic in bytes, from that in elements."""
        return StepTraffic(*(tuple(one * element_size for one in each) for each in (self.received, self.sent)))


@dataclass(frozen=True, slots=True)
class ExchangeTraffic:
    """The traffic of the messages of a direct exchange, and the number of rounds."""

    traffic: StepTraffic
    rounds: int


def move_axes(move: Move, before: Placement, after: Placement) -> GridAxes:
    """Returns the grid axes of a move, sorted."""
    if isinstance(move, (steps.CollectivePermute, steps.DirectExchange)):
        return axes_between(before, after)
    together = move.steps if isinstance(move, steps.Together) else (move,)
    return tuple(sorted(axis for step in together for axis in step.axes))


@lru_cache(maxsize=256)
def reducing_exchange(before: Placement, after: Placement, tensor: GridTensor) -> ExchangeTraffic:
    """Returns the traffic of a direct exchange that reduces, for which its messages are constructed."""
    messages = direct_exchange(tensor.layout(before), tensor.layout(after))
    return ExchangeTraffic(StepTraffic(messages.bytes_received(1), messages.bytes_sent(1)), messages.num_rounds)


def step_traffic(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> StepTraffic:
    """Returns the traffic of a move from one placement to the other, in elements. The move has to be possible."""
    one = move.steps[0] if isinstance(move, steps.Together) else move
    if isinstance(one, steps.DirectExchange) and before.unreduced != after.unreduced:
        return reducing_exchange(before, after, tensor).traffic
    traffic = traffic_on(tensor.grid.sizes, tensor.shape)
    arrays = traffic.arrays
    if isinstance(one, steps.DirectExchange):
        received = arrays.box(after.dims) - arrays.overlap(before.dims, after.dims)
        sent = arrays.sent_directly(before.dims, after.dims)
    elif isinstance(one, steps.CollectivePermute):
        counts = tuple(map(traffic.count, before.dims))
        moved = 1 - traffic_on(tensor.grid.sizes, counts).arrays.overlap(before.dims, after.dims)
        received = sent = moved.astype(arrays.dtype) * traffic.largest_box(before.dims)
    else:
        count = traffic.count(move_axes(move, before, after))
        received = sent = arrays.one * received_by_each(one, before.dims, after.dims, count, traffic)
    return StepTraffic(arrays.per_device(received), arrays.per_device(sent))


def received_by_each(move: Move, before: Dims, after: Dims, count: int, traffic: Traffic) -> int:
    """Returns the elements that each device receives in a collective among `count` devices; it sends as many."""
    if isinstance(move, steps.AllReduce):
        return traffic.reduced(after, count)
    if isinstance(move, steps.ReduceScatter):
        return traffic.scattered(after, count)
    if isinstance(move, steps.AllGather):
        return traffic.gathered(before, count)
    if isinstance(move, steps.AllToAll):
        return traffic.dealt(before, after, count)
    return 0


class StepCost(NamedTuple):
    """The cost of a move: seconds, bytes received by the device that receives most, and by all, bytes held at once.

    Memory is that of the local tensors before and after the move, with their padding; for a slice, which keeps a part
    of the local tensor before, it is that of this one.
    """

    time: float
    bytes_received: int
    total_bytes: int
    memory: int


def step_cost(move: Move, before: Placement, after: Placement, tensor: GridTensor, times: LinkTimes) -> StepCost:
    """Returns the cost of a move from one placement to the other. The move has to be possible."""
    traffic = traffic_on(tensor.grid.sizes, tensor.shape)
    one = move.steps[0] if isinstance(move, Together) else move
    held = traffic.largest_box(before.dims)
    if isinstance(one, AllSlice):
        return StepCost(0.0, 0, 0, held * tensor.element_size)
    axes = move_axes(move, before, after)
    rounds = 0
    if isinstance(one, DirectExchange):
        total, largest, rounds = _exchanged(before, after, tensor, traffic)
    elif isinstance(one, CollectivePermute):
        total, largest = traffic.permuted(before.dims, after.dims)
    else:
        largest = received_by_each(one, before.dims, after.dims, traffic.count(axes), traffic)
        total = largest * traffic.num_devices
    most = largest * tensor.element_size
    if isinstance(one, (AllGather, ReduceScatter)):
        time = times.ring(axes, most)
    elif isinstance(one, AllReduce):
        time = times.ring(axes, most) + times.ring_latency(axes)
    elif isinstance(one, AllToAll):
        time = times.messages(axes, traffic.count(axes) - 1, most)
    elif isinstance(one, CollectivePermute):
        time = times.messages(axes, 1, most)
    else:
        time = times.messages(axes, max(1, rounds), most)
    held += traffic.largest_box(after.dims)
    return StepCost(time, most, total * tensor.element_size, held * tensor.element_size)


def _exchanged(before: Placement, after: Placement, tensor: GridTensor, traffic: Traffic) -> tuple[int, int, int]:
    """Returns the elements received in a direct exchange, by all devices and by the one that receives most; rounds."""
    if before.unreduced != after.unreduced:
        exchange = reducing_exchange(before, after, tensor)
        received = exchange.traffic.received
        return sum(received), max(received), exchange.rounds
    return *traffic.lacking(before.dims, after.dims), traffic.exchange_rounds(before.dims, after.dims)
