# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of reshards on the grid of devices."""

from __future__ import annotations

from itertools import permutations

from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import Mesh
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.grid_reshards import GridReshards, Resharding


def _end(resharding: Resharding | None, start: Placement) -> Placement:
    return start if resharding is None else resharding.moves[-1].after


def test_a_slice_of_what_is_whole_is_what_the_planner_finds() -> None:
    mesh = Mesh((("x", 2), ("y", 3), ("one", 1)))
    reshards = GridReshards(DeviceGrid.for_shardings("mesh", mesh, ()))
    whole = Placement(((), ()))
    for axes in [one for count in range(4) for one in permutations(range(3), count)]:
        for cut in range(len(axes) + 1):
            target = Placement((axes[:cut], axes[cut:]))
            for shape in ((12, 18), (5, 7), (0, 4)):
                sliced = reshards.slices(target, shape)
                planned = reshards.between(whole, target, shape, 4)
                if planned is None or sliced is None:
                    assert planned is sliced
                    continue
                assert [one.move for one in sliced.moves] == [one.move for one in planned.moves]
                assert _end(sliced, whole).dims == target.dims
