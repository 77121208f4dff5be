# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grids with an axis for each sub-axis."""

from __future__ import annotations

import pytest

from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid, GridError

MESH = Mesh.of([("x", 2), ("y", 8)])


def grid(*axes: AxisRef) -> DeviceGrid:
    return DeviceGrid.for_shardings("mesh", MESH, axes)


def test_full_axes() -> None:
    whole = grid(AxisRef("y"), AxisRef("x"))
    assert whole.shape == (2, 8)
    assert whole.axes([AxisRef("y"), AxisRef("x")]) == (1, 0)


def test_sub_axes() -> None:
    cut = grid(AxisRef.sub("y", 2, 2), AxisRef("y"))
    assert cut.shape == (2, 2, 2, 2)
    assert cut.axes([AxisRef("y"), AxisRef("x")]) == (1, 2, 3, 0)
    assert cut.axes([AxisRef.sub("y", 2, 4)]) == (2, 3)
    with pytest.raises(GridError, match=r'"y":\(1\)2 is no axis of the grid \(2, 8\)'):
        grid().axes([AxisRef.sub("y", 1, 2)])


def test_placements() -> None:
    sharding = TensorSharding.closed_with([[AxisRef("y"), AxisRef("x")], []], "mesh")
    assert grid().placement(sharding, 2) == Placement(((1, 0), ()))
    assert grid().placement(None, 3) == Placement(((), (), ()))
    partial = TensorSharding("mesh", (), unreduced_axes=(AxisRef("x"),), reduction_op=ReductionOp.MAX)
    assert grid().placement(partial, 0) == Placement((), (0,), ReductionOp.MAX)


def test_local_shapes() -> None:
    assert grid().local_shape((16, 5), Placement(((1, 0), ()))) == (1, 5)
    # The last block is short.
    assert grid().local_shape((16, 5), Placement(((), (0,)))) == (16, 3)


def test_no_grid() -> None:
    with pytest.raises(GridError, match="the devices of mesh @mesh are permuted"):
        DeviceGrid.for_shardings("mesh", Mesh.of([("x", 2)], [1, 0]), ())
    with pytest.raises(GridError, match='sub-axes cut axis "x" of mesh @mesh at 2 and at 3'):
        DeviceGrid.for_shardings("mesh", Mesh.of([("x", 6)]), (AxisRef.sub("x", 1, 2), AxisRef.sub("x", 1, 3)))
