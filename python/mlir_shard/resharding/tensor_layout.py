# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout of a tensor on the devices of a mesh: the source and target of plans, bounds and exchanges.

Also the shards that the devices of a mesh hold, and the nearest device that holds a given shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, total_size
from mlir_shard.sharding.layout import Box, block_box, block_size
from mlir_shard.sharding.verify.tensor import check_mesh, check_tensor_sharding

# The weight of a digit, and how many values it has.
_Digit = tuple[int, int]
Blocks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Holdings:
    """The shard index of each device in each dimension, and the number of its partial value, by the device's position.

    `block_offsets` has, for each dimension and shard index, the contribution of the index to the position of a device
    that holds the shard.
    """

    blocks: tuple[Blocks, ...]
    partials: tuple[int, ...]
    block_offsets: tuple[tuple[int, ...], ...]
    _partial_offsets: tuple[int, ...]

    @staticmethod
    def of(mesh: Mesh, axes_per_dim: Iterable[Sequence[AxisRef]], partial_axes: Sequence[AxisRef] = ()) -> Holdings:
        """Returns the holdings of a tensor sharded along these axes; partial values are distinct along `partial_axes`.

        The axes have to be valid in the mesh.
        """
        dims = [_digits(axes, mesh) for axes in axes_per_dim]
        partial = _digits(partial_axes, mesh)
        per_dim = [_indices(digits, mesh.listed_size) for digits in dims]
        return Holdings(
            tuple(zip(*per_dim, strict=True)) if per_dim else ((),) * mesh.total_size,
            _indices(partial, mesh.total_size),
            tuple(map(_offsets, dims)),
            _offsets(partial),
        )

    @property
    def num_partials(self) -> int:
        """The number of distinct partial values."""
        return len(self._partial_offsets)

    def nearest(self, position: int, blocks: Sequence[int], partial: int) -> int:
        """Returns the position of the device nearest to `position` that holds this shard; `position` if its own does.

        Of the replicas it is the one at the same place along every axis and sub-axis on which the shard does not
        depend, so that the requests of devices are spread evenly over the replicas.
        """
        found = position + self._partial_offsets[partial] - self._partial_offsets[self.partials[position]]
        for offsets, wanted, own in zip(self.block_offsets, blocks, self.blocks[position], strict=True):
            found += offsets[wanted] - offsets[own]
        return found


def _digits(axes: Iterable[AxisRef], mesh: Mesh) -> tuple[_Digit, ...]:
    strides = {}
    stride = 1
    for axis in reversed(mesh.axes):
        strides[axis.name] = stride
        stride *= axis.size
    return tuple(
        (strides[axis.name] * (mesh.axis_size(axis.name) // axis.next_pre_size(mesh)), axis.size(mesh)) for axis in axes
    )


def _indices(digits: Sequence[_Digit], count: int) -> tuple[int, ...]:
    """Returns, for each position, the number that its digits make; the first digit is the major one."""
    result = [0] * count
    for weight, size in digits:
        result = [index * size + position // weight % size for position, index in enumerate(result)]
    return tuple(result)


def _offsets(digits: Sequence[_Digit]) -> tuple[int, ...]:
    """Returns, for each number that the digits can make, its contribution to a position."""
    offsets = [0]
    for weight, size in digits:
        offsets = [offset + weight * digit for offset in offsets for digit in range(size)]
    return tuple(offsets)


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """A tensor of `shape`, in elements, under a sharding on a mesh.

    Shards have ceildiv sizes: the last ones of a dimension may be short or empty. On a maximal mesh, where a sharding
    has rank 0, one device holds all elements. Raises ValueError if the sharding does not fit the mesh or the shape.
    """

    sharding: TensorSharding
    mesh: Mesh
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.shape):
            raise ValueError(f"a tensor of shape {list(self.shape)} has a negative size")
        if violation := check_mesh(self.mesh):
            raise ValueError(f"mesh {self.mesh}: {violation}")
        if violation := check_tensor_sharding(self.sharding, self.mesh, self.shape):
            raise ValueError(f"sharding {self.sharding} on mesh {self.mesh}: {violation}")
        if self.mesh.is_maximal:
            whole = TensorSharding.fully_closed(len(self.shape), self.sharding.mesh_or_ref)
            object.__setattr__(self, "sharding", whole)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The number of shards of each dimension."""
        return tuple(dim.sharded_size(self.mesh) for dim in self.sharding.dim_shardings)

    @property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of a full shard, which is that of every local tensor; elements outside of its box are padding."""
        return tuple(map(block_size, self.shape, self.blocks))

    @property
    def partials(self) -> int:
        """The number of partial values of each element; 1 if nothing is unreduced."""
        return total_size(self.sharding.unreduced_axes, self.mesh)

    def box(self, blocks: Sequence[int]) -> Box:
        """Returns the box of the shard with this index in each dimension."""
        return block_box(self.sharding, self.mesh, self.shape, blocks)

    def holdings(self, partial_axes: Sequence[AxisRef] = ()) -> Holdings:
        """Returns the shards that the devices hold, with partial values told apart along some of the unreduced axes."""
        return Holdings.of(self.mesh, (dim.axes for dim in self.sharding.dim_shardings), partial_axes)

    def device_boxes(self) -> dict[int, Box]:
        """Returns the box that each device holds, in the order of the mesh."""
        held = self.holdings().blocks
        boxes = {blocks: self.box(blocks) for blocks in set(held)}
        return {device: boxes[blocks] for device, blocks in zip(self.mesh.devices, held, strict=True)}


def reduced_axes(source: TensorLayout, target: TensorLayout) -> Axes:
    """Returns the axes along which partial values have to be reduced between `source` and `target`.

    Along an axis of size 1 there is one value, and nothing to reduce.

    Raises ValueError if no plan exists: the shapes differ, partial values are on another mesh, or the target is partial
    along an axis that the source is not, along a sub-axis that cannot coexist with the source's, or with another
    reduction. Making a value partial is local and moves no data.
    """
    if source.shape != target.shape:
        raise ValueError(f"a tensor of shape {list(source.shape)} cannot become one of shape {list(target.shape)}")
    before, after = source.sharding, target.sharding
    if not before.unreduced_axes and not after.unreduced_axes:
        return ()
    if source.mesh != target.mesh:
        raise ValueError(
            f"partial values require one mesh, got {source.mesh} and {target.mesh}: reduce them on the first mesh"
        )
    for held in before.unreduced_axes:
        for wanted in after.unreduced_axes:
            if not held.can_coexist(wanted):
                raise ValueError(
                    f"the source is unreduced along {held} and the target along {wanted}, but no split of the axis "
                    "has both"
                )
    added = axes_difference(after.unreduced_axes, before.unreduced_axes, source.mesh)
    if added:
        raise ValueError(f"the target is unreduced along {_listed(added)}, but the source is not partial there")
    if after.unreduced_axes and before.reduction_op is not after.reduction_op:
        raise ValueError(
            f"an unreduced {before.reduction_op.value} cannot become an unreduced {after.reduction_op.value}, "
            f"as the target has along {_listed(after.unreduced_axes)}"
        )
    reduced = axes_difference(before.unreduced_axes, after.unreduced_axes, source.mesh)
    return tuple(axis for axis in reduced if axis.size(source.mesh) > 1)


def _listed(axes: Axes) -> str:
    return ", ".join(map(str, axes))
