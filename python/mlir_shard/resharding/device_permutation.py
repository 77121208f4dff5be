# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The permutation of devices that brings a tensor from one layout to another with as many blocks per dimension."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes

# The blocks of a local tensor, and which of the partial values it is.
_Content = tuple[tuple[int, ...], int]


def device_permutation(source: TensorLayout, target: TensorLayout) -> dict[int, int]:
    """For each receiver, in the order of the target's mesh, the device whose local tensor it gets.

    A device that holds what it has to hold keeps it. ValueError where a dimension has other numbers of blocks before
    and after or partial values are reduced: that is no permutation.
    """
    if source.blocks != target.blocks or reduced_axes(source, target):
        raise ValueError(f"no permutation of devices brings {source.sharding} to {target.sharding}")
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
    """All axes of a grid with several devices, in two orders.

    The device with some number along the first order sends its local tensor to that of the same number along the
    second one. Axes that shard no dimension before and after, along which values may be partial, are in the same place
    of both, so that devices send along other axes only.
    """
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    used, wanted = ([axis for axes in one.dims for axis in axes if sizes[axis] > 1] for one in (before, after))
    kept = [axis for axis in axes if axis not in used and axis not in wanted]
    freed, taken = ([axis for axis in axes if axis not in (*one, *kept)] for one in (wanted, used))
    # What is free before is taken after, and the other way round.
    return (*used, *kept, *taken), (*wanted, *kept, *freed)


def _contents(layout: TensorLayout) -> dict[int, _Content]:
    held = layout.holdings(layout.sharding.unreduced_axes)
    return dict(zip(layout.mesh.devices, zip(held.blocks, held.partials, strict=True), strict=True))
