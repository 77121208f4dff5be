# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the collectives of the shard dialect do, on NumPy arrays: the definition of each of them here.

`Blocks` are the local tensors, all of one shape, by device. A group is the devices that differ along the axes of the
collective alone, in the order of the axes from outer to inner, as `sharding.layout.device_groups` gives them; every
device is in one group. Where local tensors have padding, it moves as data does.
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

REDUCTIONS: dict[ReductionOp, Callable[[Sequence[Array]], Array]] = {
    ReductionOp.SUM: lambda arrays: np.sum(arrays, axis=0),
    ReductionOp.MAX: lambda arrays: np.max(arrays, axis=0),
    ReductionOp.MIN: lambda arrays: np.min(arrays, axis=0),
}


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


def all_reduce(blocks: Blocks, groups: Groups, reduction: ReductionOp) -> Blocks:
    """Every device of a group gets the reduction of what they hold, element by element."""
    result = dict(blocks)
    for group in groups:
        result.update(dict.fromkeys(group, REDUCTIONS[reduction]([blocks[device] for device in group])))
    return result


def reduce_scatter(blocks: Blocks, groups: Groups, dim: int, reduction: ReductionOp) -> Blocks:
    """Device number i of a group gets part number i along `dim` of the reduction of what they hold.

    ValueError where the size is not a multiple of the group's.
    """
    return all_slice(all_reduce(blocks, groups, reduction), groups, dim)


def _parts(block: Array, count: int, dim: int) -> list[Array]:
    if block.shape[dim] % count:
        raise ValueError(f"dimension {dim} of a local tensor {list(block.shape)} has no {count} equal parts")
    return np.split(block, count, axis=dim)
