# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes that each device receives in a move, by definition: from local shapes, permutations and messages."""

from __future__ import annotations

from math import prod

from mlir_shard.resharding import steps
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.steps import Move, Placement


def bytes_received(move: Move, before: Placement, tensor: GridTensor) -> tuple[int, ...]:
    """Returns the bytes per device in the order of the mesh; raises ValueError if the move is invalid."""
    source, target = tensor.layout(before), tensor.layout(tensor.after(move, before))
    if isinstance(move, steps.DirectExchange):
        return direct_exchange(source, target).bytes_received(tensor.element_size)
    local = prod(source.local_shape)
    if isinstance(move, steps.CollectivePermute):
        sources = device_permutation(source, target)
        return tuple(tensor.element_size * local * (sources[device] != device) for device in target.mesh.devices)
    parts = move.steps if isinstance(move, steps.Together) else (move,)
    others = tensor.grid.num_devices(tuple(axis for part in parts for axis in part.axes)) - 1
    elements = 0
    if isinstance(parts[0], steps.AllGather):
        elements = local * others
    elif isinstance(parts[0], steps.AllToAll):
        elements = prod(map(min, source.local_shape, target.local_shape)) * others
    elif isinstance(parts[0], steps.ReduceScatter):
        elements = prod(target.local_shape) * others
    elif isinstance(parts[0], steps.AllReduce):
        # Each device reduces one part of the elements, and then receives the parts that the others have reduced.
        own = -(-local // (others + 1))
        elements = own * others + local - own
    return (elements * tensor.element_size,) * source.mesh.total_size
