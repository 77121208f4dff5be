# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounds of tiles deliver the result of the direct exchange with its bytes, and one message per device and round."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod

import numpy as np
import pytest

from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.tile_rounds import NO_DEVICE, tile_rounds
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding

MESH = Mesh([("x", 2), ("y", 3), ("z", 2)])


def layout(dims: str, shape: tuple[int, ...], unreduced: str = "") -> TensorLayout:
    """Returns a layout; letters name the axes of a dimension, and commas separate dimensions."""
    sharding = TensorSharding.closed_with([list(map(AxisRef, axes)) for axes in dims.split(",")], "mesh")
    axes = tuple(map(AxisRef, unreduced))
    return TensorLayout(TensorSharding("mesh", sharding.dim_shardings, (), axes), MESH, shape)


@pytest.mark.parametrize("shape", [(12, 12), (7, 5), (1, 13)], ids=str)
@pytest.mark.parametrize(
    ("before", "after"), [("x,y", "y,x"), ("xy,", ",zx"), (",z", "yz,"), ("zy,x", "xy,z"), ("x,", "x,")]
)
def test_every_device_gets_its_shard(before: str, after: str, shape: tuple[int, ...]) -> None:
    source, target = layout(before, shape), layout(after, shape)
    array = np.arange(prod(shape)).reshape(shape)
    held = [array[box.slices] for box in source.device_boxes().values()]
    found = [np.full(box.size, -1) for box in target.device_boxes().values()]
    received: Counter[int] = Counter()
    for one in tile_rounds(source, target):
        for device, sender in enumerate(one.senders):
            if sender == NO_DEVICE:
                continue
            assert one.receivers[sender] == device
            start, into = one.source_starts[sender], one.target_starts[device]
            tile = held[sender][tuple(slice(at, at + size) for at, size in zip(start, one.shape, strict=True))]
            assert tile.shape == one.shape
            found[device][tuple(slice(at, at + size) for at, size in zip(into, one.shape, strict=True))] = tile
            received[device] += tile.size * (sender != device)
        assert one.is_copy == all(sender in (NO_DEVICE, device) for device, sender in enumerate(one.senders))
    for box, local in zip(target.device_boxes().values(), found, strict=True):
        np.testing.assert_array_equal(local, array[box.slices])
    assert tuple(received[device] for device in range(12)) == direct_exchange(source, target).bytes_received(1)


def test_rounds_of_large_tensors() -> None:
    """A tile may have more than 2^64 elements; tiles of different shapes are in different rounds."""
    shape = (3 * 2**20, 2**21 + 1, 2**21, 2**21)
    rounds = tile_rounds(layout("x,,,", shape), layout(",zx,,", shape))
    received: dict[int, int] = defaultdict(int)
    for one in rounds:
        for sender, receiver in one.pairs:
            assert sender != receiver or one.is_copy
            received[receiver] += prod(one.shape)
    for device, box in enumerate(layout(",zx,,", shape).device_boxes().values()):
        assert received[device] == box.num_elements


def test_nothing_is_reduced() -> None:
    with pytest.raises(ValueError, match="an exchange in rounds of tiles cannot reduce"):
        tile_rounds(layout("y,", (6, 6), "x"), layout(",y", (6, 6)))
