# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements that each device receives and sends in a move."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlir_shard.resharding import steps
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.link_times import axes_between
from mlir_shard.resharding.steps import GridAxes, Move, Placement
from mlir_shard.resharding.traffic import traffic_on


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """What each device receives and sends, in the order of the mesh.

    A device receives what `GridTensor.bytes_received` says. It sends its block to all others of its group that want
    it, or in a reduction what of it others reduce.
    """

    received: tuple[int, ...]
    sent: tuple[int, ...]

    def in_bytes(self, element_size: int) -> StepTraffic:
        """The same in bytes rather than elements."""
        return StepTraffic(*(tuple(one * element_size for one in each) for each in (self.received, self.sent)))


@dataclass(frozen=True, slots=True)
class ExchangeTraffic:
    """What the messages of a direct exchange come to, and in how many rounds."""

    traffic: StepTraffic
    rounds: int


def move_axes(move: Move, before: Placement, after: Placement) -> GridAxes:
    """The grid axes along which a move is, sorted."""
    if isinstance(move, (steps.CollectivePermute, steps.DirectExchange)):
        return axes_between(before, after)
    together = move.steps if isinstance(move, steps.Together) else (move,)
    return tuple(sorted(axis for step in together for axis in step.axes))


@lru_cache(maxsize=256)
def reducing_exchange(before: Placement, after: Placement, tensor: GridTensor) -> ExchangeTraffic:
    """The direct exchange where values are reduced, for which its messages are made."""
    messages = direct_exchange(tensor.layout(before), tensor.layout(after))
    return ExchangeTraffic(StepTraffic(messages.bytes_received(1), messages.bytes_sent(1)), messages.num_rounds)


def step_traffic(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> StepTraffic:
    """The traffic of a move that leads from one placement to the other, which has to be one that can be."""
    one = move.steps[0] if isinstance(move, steps.Together) else move
    if isinstance(one, steps.DirectExchange) and before.unreduced != after.unreduced:
        return reducing_exchange(before, after, tensor).traffic
    arrays = traffic_on(tensor.grid.sizes, tensor.shape).arrays
    old, new = arrays.box(before.dims), arrays.box(after.dims)
    count = arrays.count(move_axes(move, before, after))
    if isinstance(one, steps.AllReduce):
        own = -(-new // count)
        received = sent = own * (count - 1) + new - own
    elif isinstance(one, steps.ReduceScatter):
        received, sent = new * (count - 1), old - new
    elif isinstance(one, steps.AllSlice):
        received = sent = old * 0
    else:
        common = arrays.overlap(before.dims, after.dims)
        received = new - common
        if isinstance(one, steps.AllGather):
            sent = old * (count - 1)
        elif isinstance(one, steps.AllToAll):
            sent = old - common
        elif isinstance(one, steps.CollectivePermute):
            # Boxes are equal or have nothing in common, and who receives nothing sends nothing.
            sent = np.where(common > 0, 0, old)
        else:
            sent = arrays.sent_directly(before.dims, after.dims)
    return StepTraffic(arrays.per_device(received), arrays.per_device(sent))
