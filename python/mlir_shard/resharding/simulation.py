# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulation of moves and collectives on NumPy arrays, which defines the semantics of plans and checks results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.resharding import steps
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import ExchangeMessages, Phase, direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor, as_mesh_axes
from mlir_shard.resharding.steps import GridAxes, Move, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import ReductionOp
from mlir_shard.sharding.layout import Box, device_groups, unreduced_index

Array = npt.NDArray[Any]
Blocks = dict[int, Array]
Groups = Sequence[Sequence[int]]
# Tensors that were sent and not yet received, by sender and receiver, the earliest first.
Mail = dict[tuple[int, int], tuple[Array, ...]]


def _by(combine: np.ufunc) -> Callable[[Sequence[Array]], Array]:
    def reduce(arrays: Sequence[Array]) -> Array:
        result: Array = combine.reduce(np.stack(arrays), axis=0, dtype=arrays[0].dtype)
        return result

    return reduce


# By the name that the shard dialect has for a reduction. Elements keep their type: a sum of truth values is their `or`.
REDUCTIONS_BY_NAME: dict[str, Callable[[Sequence[Array]], Array]] = {
    "sum": _by(np.add),
    "product": _by(np.multiply),
    "max": _by(np.maximum),
    "min": _by(np.minimum),
    "bitwise_and": _by(np.bitwise_and),
    "bitwise_or": _by(np.bitwise_or),
    "bitwise_xor": _by(np.bitwise_xor),
}
REDUCTIONS = {reduction: REDUCTIONS_BY_NAME[reduction.value] for reduction in ReductionOp}


def all_gather(blocks: Blocks, groups: Groups, dim: int) -> Blocks:
    """Gives every device of a group the tensors of the group, concatenated along `dim` in the order of the group."""
    result = dict(blocks)
    for group in groups:
        gathered = np.concatenate([blocks[device] for device in group], axis=dim)
        result.update(dict.fromkeys(group, gathered))
    return result


def all_slice(blocks: Blocks, groups: Groups, dim: int) -> Blocks:
    """Keeps of each device's tensor the part along `dim` with the device's number in the group.

    Raises ValueError if the size is not a multiple of the group's.
    """
    result = dict(blocks)
    for group in groups:
        for number, device in enumerate(group):
            result[device] = _parts(blocks[device], len(group), dim)[number]
    return result


def all_to_all(blocks: Blocks, groups: Groups, split_dim: int, concat_dim: int) -> Blocks:
    """Gives device number i of a group part number i along `split_dim` of each tensor of the group.

    The parts are concatenated along `concat_dim` in the order of the group. Raises ValueError if the size is not a
    multiple of the group's.
    """
    result = dict(blocks)
    for group in groups:
        parts = [_parts(blocks[device], len(group), split_dim) for device in group]
        for number, device in enumerate(group):
            result[device] = np.concatenate([of_device[number] for of_device in parts], axis=concat_dim)
    return result


def collective_permute(blocks: Blocks, senders: Mapping[int, int]) -> Blocks:
    """Gives every device the tensor of its sender; `senders` maps receivers to senders.

    Raises ValueError if `senders` is not a permutation of the devices.
    """
    if sorted(senders) != sorted(blocks) or sorted(senders.values()) != sorted(blocks):
        raise ValueError(f"in a permutation each of the devices {sorted(blocks)} must send once and receive once")
    return {device: blocks[senders[device]] for device in blocks}


def broadcast(blocks: Blocks, groups: Groups, root: int) -> Blocks:
    """Gives every device the tensor of device number `root` of its group.

    `shard.broadcast`: copies the input of the root to all devices of each group; the inputs of the others are ignored.
    """
    return {device: blocks[group[root]] for group in groups for device in group}


def gather(blocks: Blocks, groups: Groups, dim: int, root: int) -> Blocks:
    """Gives device number `root` of each group the tensors of the group, concatenated along `dim` in the group's order.

    `shard.gather`: the result on the other devices is undefined.
    """
    gathered = all_gather(blocks, groups, dim)
    return {group[root]: gathered[group[root]] for group in groups}


def scatter(blocks: Blocks, groups: Groups, dim: int, root: int) -> Blocks:
    """Gives every device the part of the root's tensor along `dim` with the device's number in the group.

    `shard.scatter`: splits the input of device number `root`; the inputs of the others are ignored. Raises ValueError
    if the size is not a multiple of the group's.
    """
    return all_slice(broadcast(blocks, groups, root), groups, dim)


def shift(blocks: Blocks, groups: Groups, offset: int, *, rotate: bool) -> Blocks:
    """Gives every device the tensor of the device whose number in the group is less by `offset`.

    `groups` are along the axis of the shift only; further axes of the op's group have no effect. `shard.shift`: with
    `rotate` numbers wrap around; without it, the result is undefined on devices without a source.
    """
    result: Blocks = {}
    for group in groups:
        for number, device in enumerate(group):
            source = (number - offset) % len(group) if rotate else number - offset
            if 0 <= source < len(group):
                result[device] = blocks[group[source]]
    return result


def send(blocks: Blocks, destinations: Mapping[int, int], mail: Mapping[tuple[int, int], tuple[Array, ...]]) -> Mail:
    """Returns the mail after each device in `destinations` has sent its tensor to the device given for it.

    `shard.send`: sends the input to `destination`, a device of the same group. Only the devices that reach the op send;
    their result is their input. Raises ValueError if a device sends to itself.
    """
    _check_apart(destinations, "send to")
    result = dict(mail)
    for device, destination in destinations.items():
        result[device, destination] = (*result.get((device, destination), ()), blocks[device])
    return result


def recv(sources: Mapping[int, int], mail: Mapping[tuple[int, int], tuple[Array, ...]]) -> tuple[Blocks, Mail]:
    """Returns the tensor that each device in `sources` receives from the device given for it, and the mail after that.

    `shard.recv`: receives a tensor from `source`, a device of the same group; the input is ignored. Tensors are
    received in the order in which they were sent. Raises ValueError if nothing was sent, as the device would wait
    forever, or if a device receives from itself.
    """
    _check_apart(sources, "receive from")
    result, left = {}, dict(mail)
    for device, source in sources.items():
        if not left.get((source, device)):
            raise ValueError(f"device {device} receives from device {source}, which has sent it nothing")
        result[device], *rest = left[source, device]
        left[source, device] = tuple(rest)
    return result, left


def _check_apart(others: Mapping[int, int], does: str) -> None:
    for device, other in others.items():
        if device == other:
            raise ValueError(f"device {device} would {does} itself")


def all_reduce(blocks: Blocks, groups: Groups, reduction: ReductionOp | str) -> Blocks:
    """Gives every device of a group the element-wise reduction of the tensors of the group.

    `reduction` is one of sdy's, or the name that the shard dialect has for a reduction.
    """
    result = dict(blocks)
    name = reduction.value if isinstance(reduction, ReductionOp) else reduction
    for group in groups:
        result.update(dict.fromkeys(group, REDUCTIONS_BY_NAME[name]([blocks[device] for device in group])))
    return result


def reduce(blocks: Blocks, groups: Groups, root: int, reduction: ReductionOp | str) -> Blocks:
    """Gives device number `root` of each group the element-wise reduction of the tensors of the group.

    `shard.reduce`: the result on the other devices is undefined.
    """
    reduced = all_reduce(blocks, groups, reduction)
    return {group[root]: reduced[group[root]] for group in groups}


def reduce_scatter(blocks: Blocks, groups: Groups, dim: int, reduction: ReductionOp | str) -> Blocks:
    """Gives device number i of a group part number i along `dim` of the element-wise reduction of the group's tensors.

    Raises ValueError if the size is not a multiple of the group's.
    """
    return all_slice(all_reduce(blocks, groups, reduction), groups, dim)


def _parts(block: Array, count: int, dim: int) -> list[Array]:
    if block.shape[dim] % count:
        raise ValueError(
            f"dimension {dim} of a local tensor {list(block.shape)} cannot be split into {count} equal parts"
        )
    return np.split(block, count, axis=dim)


MOST_ELEMENTS = 1 << 27
"""The most elements that all devices together may hold in a simulation."""


def place(values: Array, layout: TensorLayout) -> Blocks:
    """Returns the local tensors of a tensor with this layout.

    `values` has the shape of the tensor after a dimension of the partial values, of size 1 if nothing is unreduced.
    Raises ValueError if `values` has another shape, or if the local tensors are too large to simulate.
    """
    if values.shape != (layout.partials, *layout.shape):
        wanted = [layout.partials, *layout.shape]
        raise ValueError(
            f"values of shape {list(values.shape)} do not match a tensor with its partial values, {wanted}"
        )
    check_size(layout)
    result = {}
    for device, box in layout.device_boxes().items():
        block = _padding(layout.local_shape, values.dtype)
        block[box.local_slices] = values[unreduced_index(layout.sharding, layout.mesh, device)][box.slices]
        result[device] = block
    return result


def check_size(layout: TensorLayout) -> None:
    """Raises ValueError if all local tensors together have more than `MOST_ELEMENTS` elements."""
    elements = prod(layout.local_shape) * layout.mesh.total_size
    if max(elements, layout.mesh.total_size) > MOST_ELEMENTS:
        raise ValueError(
            f"{layout.mesh.total_size} devices hold {elements} elements of a tensor of shape {list(layout.shape)}, "
            f"too many to simulate: at most {MOST_ELEMENTS}"
        )


def without_padding(blocks: Blocks, layout: TensorLayout) -> Blocks:
    """Returns the local tensors without padding: the parts of them inside the boxes of the devices."""
    return {device: blocks[device][box.local_slices] for device, box in layout.device_boxes().items()}


def reduce_partials(values: Array, source: TensorLayout, target: TensorLayout) -> Array:
    """Returns the partial values of the target, reduced from those of the source; `place` takes both."""
    if not source.sharding.unreduced_axes:
        return values
    parts: defaultdict[int, dict[int, Array]] = defaultdict(dict)
    for device in source.mesh.devices:
        before = unreduced_index(source.sharding, source.mesh, device)
        after = unreduced_index(target.sharding, target.mesh, device)
        parts[after][before] = values[before]
    reduce = REDUCTIONS[source.sharding.reduction_op]
    return np.stack([reduce(list(parts[index].values())) for index in sorted(parts)])


def carry_out(move: Move, blocks: Blocks, before: Placement, tensor: GridTensor) -> Blocks:
    """Returns the local tensors after a move. Raises ValueError if the move is not possible, see `GridTensor.after`."""
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
        return collective_permute(blocks, device_permutation(source, target))
    groups = device_groups(as_mesh_axes(move.axes), source.mesh)
    if isinstance(move, steps.AllReduce):
        return all_reduce(blocks, groups, move.reduction)
    if isinstance(move, steps.AllGather):
        return _resized(all_gather(blocks, groups, move.dim), target.local_shape)
    sliced_dim = move.target_dim if isinstance(move, steps.AllToAll) else move.dim
    ready = _resized(blocks, _with_equal_parts(source, target, sliced_dim, move.axes, tensor))
    if isinstance(move, steps.AllSlice):
        return all_slice(ready, groups, sliced_dim)
    if isinstance(move, steps.AllToAll):
        moved = all_to_all(ready, groups, sliced_dim, move.source_dim)
        return _resized(moved, target.local_shape)
    return reduce_scatter(ready, groups, sliced_dim, move.reduction)


def exchange(messages: ExchangeMessages, blocks: Blocks) -> Blocks:
    """Returns the local tensors after a direct exchange."""
    check_size(messages.target)
    empty = _padding(messages.target.local_shape, next(iter(blocks.values())).dtype)
    result = dict.fromkeys(messages.target.mesh.devices, empty)
    for phase in messages.phases:
        result = _after_phase(phase, blocks, result, messages.source.sharding.reduction_op)
        # Reduced values are sent on by the devices that reduced them.
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
    """Returns the shape of local tensors before they are cut along `dim` into shards of the target."""
    shape = list(source.local_shape)
    shape[dim] = target.local_shape[dim] * tensor.grid.num_devices(axes)
    return tuple(shape)


def _resized(blocks: Blocks, shape: tuple[int, ...]) -> Blocks:
    """Returns the local tensors, cut off or padded at the end of each dimension to `shape`."""
    result = {}
    for device, block in blocks.items():
        resized = _padding(shape, block.dtype)
        common = tuple(slice(0, min(sizes)) for sizes in zip(shape, block.shape, strict=True))
        resized[common] = block[common]
        result[device] = resized
    return result


def _padding(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Returns an array of a value that shows if it is read: NaN, or the least integer for integer types."""
    return np.full(shape, np.nan if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min, dtype)
