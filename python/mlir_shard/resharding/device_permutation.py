# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Permutations of devices: from one layout to another of equal shards, to neighbours, and to the opposite device."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from mlir_shard.deferred import numpy as np
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axes import total_size
from mlir_shard.sharding.layout import device_array

if TYPE_CHECKING:
    import numpy.typing as npt

# The shard index of a local tensor in each dimension, and the number of its partial value.
_Content = tuple[tuple[int, ...], int]


def device_permutation(source: TensorLayout, target: TensorLayout) -> dict[int, int]:
    """Returns for each receiver, in the order of the target's mesh, the device whose local tensor it receives.

    A device that already holds its target shard keeps it. Raises ValueError if a dimension has different numbers of
    shards before and after, if the devices differ, or if partial values are reduced: then it is not a permutation.
    """
    if source.blocks != target.blocks or reduced_axes(source, target) or not source.mesh.has_same_devices(target.mesh):
        raise ValueError(f"no permutation of devices converts {source.sharding} to {target.sharding}")
    have, want = _contents(source), _contents(target)
    spare: defaultdict[_Content, deque[int]] = defaultdict(deque)
    for device, content in have.items():
        if want[device] != content:
            spare[content].append(device)
    senders = {}
    for device, content in want.items():
        senders[device] = device if have[device] == content else spare[content].popleft()
    return senders


def axis_orders(before: Placement, after: Placement, sizes: Sequence[int]) -> tuple[GridAxes, GridAxes]:
    """Returns all axes of a grid with several devices, in two orders.

    The device with a number along the first order sends its local tensor to the device with this number along the
    second one. Axes that shard no dimension before or after, along which values may be partial, are at the same
    position in both, so that devices send along other axes only.
    """
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    used, wanted = ([axis for axes in one.dims for axis in axes if sizes[axis] > 1] for one in (before, after))
    kept = [axis for axis in axes if axis not in used and axis not in wanted]
    freed, taken = ([axis for axis in axes if axis not in (*one, *kept)] for one in (wanted, used))
    # Axes that are free before are taken after, and the other way round.
    return (*used, *kept, *taken), (*wanted, *kept, *freed)


def _contents(layout: TensorLayout) -> dict[int, _Content]:
    held = layout.holdings(layout.sharding.unreduced_axes)
    return dict(zip(layout.mesh.devices, zip(held.blocks, held.partials, strict=True), strict=True))


@dataclass(frozen=True, slots=True)
class Digit:
    """The coordinate of a device along an axis or sub-axis: position in the mesh // `stride` % `size`."""

    stride: int
    size: int

    @staticmethod
    def of(axis: AxisRef, mesh: Mesh) -> Digit:
        """Returns the digit of an axis of the mesh."""
        minor = prod(one.size for one in mesh.axes[mesh.axis_index(axis.name) + 1 :])
        size = axis.size(mesh)
        return Digit(minor * (mesh.axis_size(axis.name) // (axis.pre_size * size)), size)

    def at(self, position: int) -> int:
        """Returns the coordinate of the device at a position in the mesh."""
        return position // self.stride % self.size


def shift_pairs(axes: Sequence[AxisRef], mesh: Mesh, offset: int, *, rotates: bool = False) -> npt.NDArray[np.int64]:
    """Returns rows (source, target) of devices: shard i of a dimension along `axes` goes to shard i + `offset`.

    Shards that would leave the dimension are not sent; if it `rotates`, they enter it at the other end. The pairs are
    in the order of the sources in the mesh.
    """
    devices = device_array(mesh)
    positions = np.arange(len(devices))
    index = np.full_like(positions, 0)
    for axis in axes:
        digit = Digit.of(axis, mesh)
        index = index * digit.size + positions // digit.stride % digit.size
    index += offset
    if rotates:
        index %= total_size(axes, mesh)
    is_sent = (index >= 0) & (index < total_size(axes, mesh))
    positions, index = positions[is_sent], index[is_sent]
    targets = positions
    for axis in reversed(axes):
        digit = Digit.of(axis, mesh)
        targets = targets + (index % digit.size - positions // digit.stride % digit.size) * digit.stride
        index = index // digit.size
    return np.stack((devices[positions], devices[targets]), axis=1)


def with_reversed_axes(mesh: Mesh, axes: Sequence[AxisRef]) -> Mesh:
    """Returns the mesh with its devices in the opposite order along `axes`."""
    devices = device_array(mesh)
    mirrored = positions = np.arange(len(devices))
    for axis in axes:
        digit = Digit.of(axis, mesh)
        mirrored = mirrored + (digit.size - 1 - 2 * (positions // digit.stride % digit.size)) * digit.stride
    ids = tuple(devices[mirrored].tolist())
    return replace(mesh, device_ids=() if ids == tuple(range(len(ids))) else ids)
