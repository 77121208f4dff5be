# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a move costs: the bytes that devices receive, the time that takes, and the memory it needs."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.link_times import LinkTimes
from mlir_shard.resharding.step_traffic import move_axes, received_by_each, reducing_exchange
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    Move,
    Placement,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.traffic import Traffic, traffic_on


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


def step_cost(move: Move, before: Placement, after: Placement, tensor: GridTensor, times: LinkTimes) -> StepCost:
    """What a move costs that leads from one placement to the other, which has to be one that can be."""
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
    """The elements that all devices, and the one that receives most, receive in a direct exchange, and its rounds."""
    if before.unreduced != after.unreduced:
        exchange = reducing_exchange(before, after, tensor)
        received = exchange.traffic.received
        return sum(received), max(received), exchange.rounds
    return *traffic.lacking(before.dims, after.dims), traffic.exchange_rounds(before.dims, after.dims)
