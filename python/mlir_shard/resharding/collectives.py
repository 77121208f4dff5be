# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the collectives of the shard dialect do, on NumPy arrays: the definition of each of them here.

`Blocks` are the local tensors, all of one shape, by device. A group is the devices that differ along the axes of the
collective alone, in the order of the axes from outer to inner, as `sharding.layout.device_groups` gives them; every
device is in one group. Where local tensors have padding, it moves as data does.

They are those of upstream's ShardOps.td (mlir/include/mlir/Dialect/Shard/IR), with its groups: `grid_axes` gives the
order of a group and the meaning of an in-group multi-index, which is here the device's number in the group. Where a
result is undefined there, the device has no block here. What upstream says of an op is told with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlir_shard.sharding import ReductionOp

Array = npt.NDArray[Any]
Blocks = dict[int, Array]
Groups = Sequence[Sequence[int]]
# What devices have sent and others not yet received, by sender and receiver, the earliest first.
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
    """Every device of a group gets their tensors, concatenated along `dim` in the order of the group."""
    result = dict(blocks)
    for group in groups:
        gathered = np.concatenate([blocks[device] for device in group], axis=dim)
        result.update(dict.fromkeys(group, gathered))
    return result


def all_slice(blocks: Blocks, groups: Groups, dim: int) -> Blocks:
    """Every device keeps of its own tensor the part along `dim` with its number in the group.

    ValueError where the size is not a multiple of the group's.
    """
    result = dict(blocks)
    for group in groups:
        for number, device in enumerate(group):
            result[device] = _parts(blocks[device], len(group), dim)[number]
    return result


def all_to_all(blocks: Blocks, groups: Groups, split_dim: int, concat_dim: int) -> Blocks:
    """Device number i of a group gets of each one's tensor part number i along `split_dim`.

    It concatenates them along `concat_dim` in the order of the group. ValueError where the size is not a multiple of
    the group's.
    """
    result = dict(blocks)
    for group in groups:
        parts = [_parts(blocks[device], len(group), split_dim) for device in group]
        for number, device in enumerate(group):
            result[device] = np.concatenate([of_device[number] for of_device in parts], axis=concat_dim)
    return result


def collective_permute(blocks: Blocks, senders: Mapping[int, int]) -> Blocks:
    """Every device gets the tensor of its sender, given by receiver.

    ValueError where that is no permutation of the devices.
    """
    if sorted(senders) != sorted(blocks) or sorted(senders.values()) != sorted(blocks):
        raise ValueError(f"in a permutation each of the devices {sorted(blocks)} sends once and receives once")
    return {device: blocks[senders[device]] for device in blocks}


def broadcast(blocks: Blocks, groups: Groups, root: int) -> Blocks:
    """Every device gets the tensor of device number `root` of its group.

    `shard.broadcast`: copies the input of the root to all devices of each group; what the others hold is ignored.
    """
    return {device: blocks[group[root]] for group in groups for device in group}


def gather(blocks: Blocks, groups: Groups, dim: int, root: int) -> Blocks:
    """Device number `root` of each group gets their tensors, concatenated along `dim` in the order of the group.

    `shard.gather`: the result on the devices that are no root is undefined.
    """
    gathered = all_gather(blocks, groups, dim)
    return {group[root]: gathered[group[root]] for group in groups}


def scatter(blocks: Blocks, groups: Groups, dim: int, root: int) -> Blocks:
    """Every device gets, of the tensor of device number `root`, the part along `dim` with its number in the group.

    `shard.scatter`: splits the input of the root; what the others hold is ignored. ValueError where the size is not a
    multiple of the group's.
    """
    return all_slice(broadcast(blocks, groups, root), groups, dim)


def shift(blocks: Blocks, groups: Groups, offset: int, *, rotate: bool) -> Blocks:
    """Every device gets the tensor of the one whose number in the group is less by `offset`.

    groups: along the axis of the shift alone. `shard.shift`: with `rotate` numbers wrap around; without, the result is
    undefined on devices without a source. Further axes of its group have no part in it.
    """
    result: Blocks = {}
    for group in groups:
        for number, device in enumerate(group):
            source = (number - offset) % len(group) if rotate else number - offset
            if 0 <= source < len(group):
                result[device] = blocks[group[source]]
    return result


def send(blocks: Blocks, destinations: Mapping[int, int], mail: Mapping[tuple[int, int], tuple[Array, ...]]) -> Mail:
    """The mail after each device in `destinations` has sent its tensor to the device given for it.

    `shard.send`: sends the input to `destination`, a device of the same group. Only the devices that come to the op
    send; their result is their input. ValueError where a device sends to itself.
    """
    _check_apart(destinations, "send to")
    result = dict(mail)
    for device, destination in destinations.items():
        result[device, destination] = (*result.get((device, destination), ()), blocks[device])
    return result


def recv(sources: Mapping[int, int], mail: Mapping[tuple[int, int], tuple[Array, ...]]) -> tuple[Blocks, Mail]:
    """What each device in `sources` gets from the device given for it, and the mail after that.

    `shard.recv`: receives a tensor from `source`, a device of the same group; what the input holds is ignored. A
    device gets what was sent first. ValueError where nothing was sent, which would be waited for for ever, or where a
    device receives from itself.
    """
    _check_apart(sources, "receive from")
    result, left = {}, dict(mail)
    for device, source in sources.items():
        if not left.get((source, device)):
            raise ValueError(f"device {device} waits for device {source}, which has sent it nothing")
        result[device], *rest = left[source, device]
        left[source, device] = tuple(rest)
    return result, left


def _check_apart(others: Mapping[int, int], does: str) -> None:
    for device, other in others.items():
        if device == other:
            raise ValueError(f"device {device} would {does} itself")


def all_reduce(blocks: Blocks, groups: Groups, reduction: ReductionOp | str) -> Blocks:
    """Every device of a group gets the reduction of what they hold, element by element.

    reduction: one of sdy's, or the name that the shard dialect has for one.
    """
    result = dict(blocks)
    name = reduction.value if isinstance(reduction, ReductionOp) else reduction
    for group in groups:
        result.update(dict.fromkeys(group, REDUCTIONS_BY_NAME[name]([blocks[device] for device in group])))
    return result


def reduce(blocks: Blocks, groups: Groups, root: int, reduction: ReductionOp | str) -> Blocks:
    """Device number `root` of each group gets the reduction of what they hold, element by element.

    `shard.reduce`: the result on the devices that are no root is undefined.
    """
    reduced = all_reduce(blocks, groups, reduction)
    return {group[root]: reduced[group[root]] for group in groups}


def reduce_scatter(blocks: Blocks, groups: Groups, dim: int, reduction: ReductionOp | str) -> Blocks:
    """Device number i of a group gets part number i along `dim` of the reduction of what they hold.

    ValueError where the size is not a multiple of the group's.
    """
    return all_slice(all_reduce(blocks, groups, reduction), groups, dim)


def _parts(block: Array, count: int, dim: int) -> list[Array]:
    if block.shape[dim] % count:
        raise ValueError(f"dimension {dim} of a local tensor {list(block.shape)} has no {count} equal parts")
    return np.split(block, count, axis=dim)
