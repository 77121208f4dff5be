# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a move costs: bytes that devices receive and send, the time that takes, and the memory it needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.link_times import LinkTimes, axes_between
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
from mlir_shard.resharding.traffic import PerDevice, traffic_on


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a move takes: seconds, bytes received by the device that receives most, and by all, bytes held at once.

    Memory is that of the local tensors before and after the move, with their padding; a slice keeps a part of the one
    that is there.
    """

    time: float
    bytes_received: int
    total_bytes: int
    memory: int


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """The elements that each device receives and sends in a move, and the rounds of messages of a direct exchange.

    A device receives what `GridTensor.bytes_received` says. It sends its block to all others of its group that want
    it, or in a reduction what of it others reduce.
    """

    received: PerDevice
    sent: PerDevice
    rounds: int = 0


def move_axes(move: Move, before: Placement, after: Placement) -> GridAxes:
    """The grid axes along which a move is, sorted."""
    if isinstance(move, (CollectivePermute, DirectExchange)):
        return axes_between(before, after)
    steps = move.steps if isinstance(move, Together) else (move,)
    return tuple(sorted(axis for step in steps for axis in step.axes))


def step_traffic(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> StepTraffic:
    """The bytes of a move that leads from one placement to the other, which has to be one that can be."""
    traffic = traffic_on(tensor.grid.sizes, tensor.shape)
    one = move.steps[0] if isinstance(move, Together) else move
    if isinstance(one, DirectExchange) and before.unreduced != after.unreduced:
        messages = direct_exchange(tensor.layout(before), tensor.layout(after))
        received, sent = (
            np.array(one).reshape(traffic.sizes) for one in (messages.bytes_received(1), messages.bytes_sent(1))
        )
        return StepTraffic(received, sent, messages.num_rounds)
    rounds = 0
    old, new = traffic.box(before.dims), traffic.box(after.dims)
    count = traffic.count(move_axes(move, before, after))
    if isinstance(one, AllReduce):
        own = -(-new // count)
        received = sent = own * (count - 1) + new - own
    elif isinstance(one, ReduceScatter):
        received, sent = new * (count - 1), old - new
    elif isinstance(one, AllSlice):
        received = sent = old * 0
    else:
        common = traffic.overlap(before.dims, after.dims)
        received = new - common
        if isinstance(one, AllGather):
            sent = old * (count - 1)
        elif isinstance(one, AllToAll):
            sent = old - common
        elif isinstance(one, CollectivePermute):
            # Boxes are equal or have nothing in common, and who receives nothing sends nothing.
            sent = np.where(common > 0, 0, old)
        else:
            sent = traffic.sent_directly(before.dims, after.dims)
            rounds = traffic.exchange_rounds(before.dims, after.dims)
    return StepTraffic(received, sent, rounds)


def step_cost(move: Move, before: Placement, after: Placement, tensor: GridTensor, times: LinkTimes) -> StepCost:
    """What a move costs that leads from one placement to the other, which has to be one that can be."""
    return cost_of_traffic(step_traffic(move, before, after, tensor), move, before, after, tensor, times)


def cost_of_traffic(
    traffic: StepTraffic, move: Move, before: Placement, after: Placement, tensor: GridTensor, times: LinkTimes
) -> StepCost:
    """What a move with this traffic costs."""
    shape = traffic_on(tensor.grid.sizes, tensor.shape)
    most = int(traffic.received.max()) * tensor.element_size
    axes = move_axes(move, before, after)
    one = move.steps[0] if isinstance(move, Together) else move
    if isinstance(one, AllSlice):
        time = 0.0
    elif isinstance(one, (AllGather, ReduceScatter)):
        time = times.ring(axes, most)
    elif isinstance(one, AllReduce):
        time = times.ring(axes, most) + times.ring_latency(axes)
    elif isinstance(one, AllToAll):
        time = times.messages(axes, shape.count(axes) - 1, most)
    elif isinstance(one, CollectivePermute):
        time = times.messages(axes, 1, most)
    else:
        time = times.messages(axes, max(1, traffic.rounds), most)
    held = shape.largest_box(before.dims) + (0 if isinstance(one, AllSlice) else shape.largest_box(after.dims))
    total = shape.total(traffic.received) * tensor.element_size
    return StepCost(time, most, total, held * tensor.element_size)
