# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves carried out on NumPy arrays on every device: what a plan means, and the proof that it delivers.

Local tensors have the size of a full block, and what is beyond a device's box is padding. Where a collective needs
equal parts of a dimension, local tensors are padded before it; what is beyond a full block afterwards is cut off.
"""

from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

import numpy as np

from mlir_shard.resharding import collectives, steps
from mlir_shard.resharding.collectives import REDUCTIONS, Array, Blocks
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import ExchangeMessages, Phase, direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor, as_mesh_axes
from mlir_shard.resharding.steps import GridAxes, Move, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import ReductionOp
from mlir_shard.sharding.layout import Box, device_groups, unreduced_index

MOST_ELEMENTS = 1 << 27
"""How many elements all devices together may hold in a simulation."""


def place(values: Array, layout: TensorLayout) -> Blocks:
    """The local tensors of a tensor that lies so.

    `values` has the shape of the tensor after a dimension of the partial values, of size 1 where nothing is unreduced.
    ValueError where it has another shape, or the local tensors are too large to be simulated.
    """
    if values.shape != (layout.partials, *layout.shape):
        wanted = [layout.partials, *layout.shape]
        raise ValueError(f"values of shape {list(values.shape)} are no tensor with its partial values, {wanted}")
    check_size(layout)
    result = {}
    for device, box in layout.device_boxes().items():
        block = _padding(layout.local_shape, values.dtype)
        block[box.local_slices] = values[unreduced_index(layout.sharding, layout.mesh, device)][box.slices]
        result[device] = block
    return result


def check_size(layout: TensorLayout) -> None:
    """ValueError where all local tensors together have more than `MOST_ELEMENTS`."""
    elements = prod(layout.local_shape) * layout.mesh.total_size
    if max(elements, layout.mesh.total_size) > MOST_ELEMENTS:
        raise ValueError(
            f"{layout.mesh.total_size} devices hold {elements} elements of a tensor of shape {list(layout.shape)}, "
            f"too many to simulate: at most {MOST_ELEMENTS}"
        )


def without_padding(blocks: Blocks, layout: TensorLayout) -> Blocks:
    """What of their local tensors is in the boxes of the devices."""
    return {device: blocks[device][box.local_slices] for device, box in layout.device_boxes().items()}


def reduce_partials(values: Array, source: TensorLayout, target: TensorLayout) -> Array:
    """The partial values that the target keeps, from those of the source; both as `place` takes them."""
    parts: defaultdict[int, dict[int, Array]] = defaultdict(dict)
    for device in source.mesh.devices:
        before = unreduced_index(source.sharding, source.mesh, device)
        after = unreduced_index(target.sharding, target.mesh, device)
        parts[after][before] = values[before]
    reduce = REDUCTIONS[source.sharding.reduction_op]
    return np.stack([reduce(list(parts[index].values())) for index in sorted(parts)])


def carry_out(move: Move, blocks: Blocks, before: Placement, tensor: GridTensor) -> Blocks:
    """The local tensors after a move; ValueError where the move cannot be, see `GridTensor.after`."""
    after = tensor.after(move, before)
    if isinstance(move, steps.Together):
        for step in move.steps:
            blocks = carry_out(step, blocks, before, tensor)
            before = tensor.after(step, before)
        return blocks
    source, target = tensor.layout(before), tensor.layout(after)
    check_size(target)
    if isinstance(move, steps.DirectExchange):
        return exchange(direct_exchange(source, target), blocks)
    if isinstance(move, steps.CollectivePermute):
        return collectives.collective_permute(blocks, device_permutation(source, target))
    groups = device_groups(as_mesh_axes(move.axes), source.mesh)
    if isinstance(move, steps.AllReduce):
        return collectives.all_reduce(blocks, groups, move.reduction)
    if isinstance(move, steps.AllGather):
        return _resized(collectives.all_gather(blocks, groups, move.dim), target.local_shape)
    sliced_dim = move.target_dim if isinstance(move, steps.AllToAll) else move.dim
    ready = _resized(blocks, _with_equal_parts(source, target, sliced_dim, move.axes, tensor))
    if isinstance(move, steps.AllSlice):
        return collectives.all_slice(ready, groups, sliced_dim)
    if isinstance(move, steps.AllToAll):
        moved = collectives.all_to_all(ready, groups, sliced_dim, move.source_dim)
        return _resized(moved, target.local_shape)
    return collectives.reduce_scatter(ready, groups, sliced_dim, move.reduction)


def exchange(messages: ExchangeMessages, blocks: Blocks) -> Blocks:
    """The local tensors after a direct exchange."""
    check_size(messages.target)
    empty = _padding(messages.target.local_shape, next(iter(blocks.values())).dtype)
    result = dict.fromkeys(messages.target.mesh.devices, empty)
    for phase in messages.phases:
        result = _after_phase(phase, blocks, result, messages.source.sharding.reduction_op)
        # What has been reduced is sent on from where it is.
        blocks = result
    return result


def _after_phase(phase: Phase, senders: Blocks, receivers: Blocks, reduction: ReductionOp) -> Blocks:
    landed: defaultdict[tuple[int, Box], list[Array]] = defaultdict(list)
    for message in (*phase.copies, *phase.messages):
        for tile in message.tiles:
            landed[message.receiver, tile.target_box].append(senders[message.sender][tile.source_box.slices])
    result = {device: block.copy() for device, block in receivers.items()}
    for (device, box), values in landed.items():
        result[device][box.slices] = values[0] if len(values) == 1 else REDUCTIONS[reduction](values)
    return result


def _with_equal_parts(
    source: TensorLayout, target: TensorLayout, dim: int, axes: GridAxes, tensor: GridTensor
) -> tuple[int, ...]:
    """The shape of local tensors before they are cut along `dim` in blocks of the target."""
    shape = list(source.local_shape)
    shape[dim] = target.local_shape[dim] * tensor.grid.num_devices(axes)
    return tuple(shape)


def _resized(blocks: Blocks, shape: tuple[int, ...]) -> Blocks:
    """The local tensors cut off or padded at the end of each dimension."""
    result = {}
    for device, block in blocks.items():
        resized = _padding(shape, block.dtype)
        common = tuple(slice(0, min(sizes)) for sizes in zip(shape, block.shape, strict=True))
        resized[common] = block[common]
        result[device] = resized
    return result


def _padding(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """What shows where it is read: not a number, or for integers the smallest."""
    return np.full(shape, np.nan if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min, dtype)
