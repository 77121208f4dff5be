# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least bytes that devices have to receive to change a layout, and how shards of two shardings overlap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from mlir_shard.deferred import numpy as np
from mlir_shard.resharding.cost.block_arrays import integers_up_to
from mlir_shard.resharding.cost.traffic import traffic_on
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.tensor_layout import Blocks, Holdings, TensorLayout, reduced_axes
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.axes import Axes, total_size
from mlir_shard.sharding.layout import block_size

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Segment:
    """The elements `start` to `stop` of a dimension, which are in one shard before and in one shard after."""

    start: int
    stop: int
    source_block: int
    target_block: int

    @property
    def size(self) -> int:
        """The number of elements, at least 1."""
        return self.stop - self.start


def segments_by_target(size: int, source_blocks: int, target_blocks: int) -> tuple[tuple[Segment, ...], ...]:
    """Returns, for each target shard, its segments in ascending order; no segments if it is empty.

    `size` is in elements; a target shard from b to e has elements of the source shards b // s to (e - 1) // s, where s
    is the size of a source shard.
    """
    source_step, target_step = block_size(size, source_blocks), block_size(size, target_blocks)
    result = []
    for block in range(target_blocks):
        begin, end = min(block * target_step, size), min((block + 1) * target_step, size)
        sources = range(begin // source_step, (end - 1) // source_step + 1) if begin < end else range(0)
        result.append(
            tuple(
                Segment(max(begin, source * source_step), min(end, (source + 1) * source_step), source, block)
                for source in sources
            )
        )
    return tuple(result)


def overlap(size: int, source_blocks: int, source_block: int, target_blocks: int, target_block: int) -> int:
    """Returns the number of elements that a source shard and a target shard have in common."""
    source_step, target_step = block_size(size, source_blocks), block_size(size, target_blocks)
    begin = max(source_block * source_step, target_block * target_step)
    end = min((source_block + 1) * source_step, (target_block + 1) * target_step, size)
    return max(0, end - begin)


def blocks_nest(size: int, blocks: int, other_blocks: int) -> bool:
    """Returns whether each shard of the coarser partition consists of the next few shards of the finer one.

    Only then can a device slice its shard to a finer one, or a group gather its shards to a coarser one, without data
    of other devices. Shards nest if one number of shards is a multiple of the other and divides the size; 2 and 4
    shards of 5 elements, cut at 3 and at 2 and 4, do not.
    """
    if blocks == other_blocks:
        return True
    few, many = (blocks, other_blocks) if blocks < other_blocks else (other_blocks, blocks)
    if many % few:
        return False
    coarse, fine = block_size(size, few), block_size(size, many)
    return few == 1 or coarse >= size or fine * (many // few) == coarse


@dataclass(frozen=True)
class LowerBound:
    """The least bytes that all devices have to receive together, and that the device with most has to receive.

    `per_device` is computed when it is needed.
    """

    total: int
    maximum: int
    of_devices: Callable[[], tuple[int, ...]] = field(repr=False, compare=False)

    @cached_property
    def per_device(self) -> tuple[int, ...]:
        """The bytes that each device has to receive, in the order of the target's mesh."""
        return self.of_devices()


def lower_bound(source: TensorLayout, target: TensorLayout, element_size: int) -> LowerBound:
    """Returns the bound for resharding from `source` to `target`; `element_size` is in bytes.

    `total` is the sum of the bytes that each device has to receive, and may be more if partial values are reduced.
    Raises ValueError if no plan exists, or if the element size is not positive.
    """
    if element_size <= 0:
        raise ValueError(f"an element must have at least 1 byte, got {element_size}")
    partials = total_size(reduced_axes(source, target), source.mesh)
    if partials > 1:
        per_device = [box.num_elements for box in target.device_boxes().values()]
        total = sum(per_device) + _extra_to_reduce(source, target, partials)
        return _bound(per_device, total, element_size)
    grid = _shared_grid(source, target)
    if grid is None:
        per_device = _lacking(source, target)
        return _bound(per_device, sum(per_device), element_size)
    before, after = (grid.placement(layout.sharding).dims for layout in (source, target))
    total, most = traffic_on(grid.sizes, source.shape).lacking(before, after)

    def of_devices() -> tuple[int, ...]:
        return tuple(elements * element_size for elements in _lacking(source, target))

    return LowerBound(total * element_size, most * element_size, of_devices)


def _bound(elements: Sequence[int], total: int, element_size: int) -> LowerBound:
    per_device = tuple(one * element_size for one in elements)
    return LowerBound(total * element_size, max(per_device), lambda: per_device)


def _shared_grid(source: TensorLayout, target: TensorLayout) -> Grid | None:
    """Returns the grid of two layouts on one mesh; None if they share no grid."""
    if source.mesh != target.mesh:
        return None
    dims = (*source.sharding.dim_shardings, *target.sharding.dim_shardings)
    unreduced = (*source.sharding.unreduced_axes, *target.sharding.unreduced_axes)
    try:
        return Grid.of(source.mesh, (*(axis for dim in dims for axis in dim.axes), *unreduced))
    except ValueError:
        return None


def _lacking(source: TensorLayout, target: TensorLayout) -> list[int]:
    """Returns, for each device, the number of elements of its target box that it does not hold."""
    held = _block_indices(source)
    integers = integers_up_to(prod(max(size, 1) for size in source.shape))
    kept = np.ones(target.mesh.total_size, integers)
    if source.mesh.devices != target.mesh.devices:
        at_source = {device: position for position, device in enumerate(source.mesh.devices)}
        # A device that is not in the source's mesh holds nothing, whichever shard is used for it.
        order = [at_source.get(device, 0) for device in target.mesh.devices]
        held = [blocks[order] for blocks in held]
        kept = np.array([device in at_source for device in target.mesh.devices], integers)
    wanted = _block_indices(target)
    size = np.ones(target.mesh.total_size, integers)
    for dim, (own, block) in enumerate(zip(held, wanted, strict=True)):
        whole = source.shape[dim]
        own, block = own.astype(integers), block.astype(integers)
        old_step, new_step = source.local_shape[dim], target.local_shape[dim]
        begin, end = np.minimum(block * new_step, whole), np.minimum((block + 1) * new_step, whole)
        common = np.minimum(end, (own + 1) * old_step) - np.maximum(begin, own * old_step)
        size = size * (end - begin)
        kept = kept * np.maximum(common, 0)
    result: list[int] = (size - kept).tolist()
    return result


def _block_indices(layout: TensorLayout) -> list[npt.NDArray[np.int64]]:
    """Returns, for each dimension, the index of the shard that each device holds, in the order of the mesh."""
    return [_indices(layout.mesh, dim.axes) for dim in layout.sharding.dim_shardings]


@lru_cache(maxsize=4096)
def _indices(mesh: Mesh, axes: Axes) -> npt.NDArray[np.int64]:
    return np.array(Holdings.of(mesh, (axes,)).blocks, np.int64).reshape(-1)


def _extra_to_reduce(source: TensorLayout, target: TensorLayout, partials: int) -> int:
    """Returns the values that devices have to receive beyond one for each element of each target box."""
    dims = [segments_by_target(*of_dim) for of_dim in zip(source.shape, source.blocks, target.blocks, strict=True)]
    held: defaultdict[tuple[int, Blocks], set[Blocks]] = defaultdict(set)
    kept = target.holdings(target.sharding.unreduced_axes)
    for own, wanted, partial in zip(source.holdings().blocks, kept.blocks, kept.partials, strict=True):
        held[partial, wanted].add(own)
    extra = 0
    for (_, wanted), sources in held.items():
        for tile in product(*(dim[block] for dim, block in zip(dims, wanted, strict=True))):
            is_held = tuple(segment.source_block for segment in tile) in sources
            extra += prod(segment.size for segment in tile) * (partials - 2 + (not is_held))
    return extra
