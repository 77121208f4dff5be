# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The permutation of devices that brings a tensor from one layout to another with as many blocks per dimension."""

from __future__ import annotations

from collections import defaultdict

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
    spare: defaultdict[_Content, list[int]] = defaultdict(list)
    for device, content in have.items():
        if want[device] != content:
            spare[content].append(device)
    senders = {}
    for device, content in want.items():
        senders[device] = device if have[device] == content else spare[content].pop(0)
    return senders


def _contents(layout: TensorLayout) -> dict[int, _Content]:
    held = layout.holdings(layout.sharding.unreduced_axes)
    return dict(zip(layout.mesh.devices, zip(held.blocks, held.partials, strict=True), strict=True))
