# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of device grids, which have an axis for each sub-axis."""

from __future__ import annotations

import pytest

from mlir_shard.resharding.steps import Placement
from mlir_shard.sharding import AxisRef, Mesh, ReductionOp, TensorSharding
from mlir_shard.transforms.device_grid import DeviceGrid, GridError

MESH = Mesh([("x", 2), ("y", 8)])


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
    with pytest.raises(GridError, match=r'"y":\(1\)2 does not consist of axes of the grid \[2, 8\]'):
        grid().axes([AxisRef.sub("y", 1, 2)])


def test_placements() -> None:
    sharding = TensorSharding.closed_with([[AxisRef("y"), AxisRef("x")], []], "mesh")
    assert grid().placement(sharding, 2) == Placement(((1, 0), ()))
    assert grid().placement(None, 3) == Placement(((), (), ()))
    partial = TensorSharding("mesh", (), unreduced_axes=(AxisRef("x"),), reduction_op=ReductionOp.MAX)
    assert grid().placement(partial, 0) == Placement((), (0,), ReductionOp.MAX)


def test_local_shapes() -> None:
    assert grid().local_shape((16, 5), Placement(((1, 0), ()))) == (1, 5)
    # The last shard is short.
    assert grid().local_shape((16, 5), Placement(((), (0,)))) == (16, 3)


def test_no_grid() -> None:
    with pytest.raises(GridError, match="the devices of mesh @mesh are permuted"):
        DeviceGrid.for_shardings("mesh", Mesh([("x", 2)], [1, 0]), ())
    with pytest.raises(GridError, match='sub-axes split axis "x" of mesh @mesh at 2 and at 3'):
        DeviceGrid.for_shardings("mesh", Mesh([("x", 6)]), (AxisRef.sub("x", 1, 2), AxisRef.sub("x", 1, 3)))


def test_permuted_meshes() -> None:
    plain, swapped = Mesh([("a", 2), ("b", 4)]), Mesh([("b", 4), ("a", 2)], [0, 4, 1, 5, 2, 6, 3, 7])
    both = DeviceGrid.for_meshes("plain", [], {"plain": plain, "swapped": swapped})
    assert both.shape == (2, 4)
    assert both.axes_of("swapped", (AxisRef("b"), AxisRef("a"))) == both.axes_of("plain", (AxisRef("b"), AxisRef("a")))
    assert not both.reordered


def test_axes_in_runs() -> None:
    # Devices are 1 and 4 apart along "a", and 2 apart along "b".
    mesh = Mesh([("a", 4), ("b", 2)], [0, 2, 1, 3, 4, 6, 5, 7])
    found = DeviceGrid.for_meshes("mesh", [], {"mesh": mesh})
    assert found.shape == (2, 2, 2)
    assert found.axes_of("mesh", (AxisRef("a"), AxisRef("b"))) == (0, 2, 1)
    assert found.axes_of("mesh", (AxisRef.sub("a", 2, 2),)) == (2,)


@pytest.mark.parametrize("ids", [[1, 0, 2, 3], [3, 2, 1, 0], [0, 1, 3, 2]])
def test_devices_without_strides_are_taken_in_order(ids: list[int]) -> None:
    mesh = Mesh([("x", 4)], ids)
    found = DeviceGrid.for_meshes("mesh", [(mesh, (AxisRef("x"),))], {"mesh": mesh})
    assert (found.shape, found.reordered) == ((4,), {mesh})


def test_strides_that_give_no_grid_with_another_mesh() -> None:
    mesh, swapped = Mesh([("a", 2), ("b", 3)]), Mesh([("a", 2), ("b", 3)], [0, 2, 4, 1, 3, 5])
    assert DeviceGrid.for_meshes("mesh", [], {"swapped": swapped}).shape == (3, 2)
    both = DeviceGrid.for_meshes("mesh", [], {"mesh": mesh, "swapped": swapped})
    assert (both.shape, both.reordered) == ((2, 3), {swapped})


def test_positions() -> None:
    grid_of_three = DeviceGrid.for_meshes("mesh", [], {"mesh": Mesh([("x", 2), ("y", 3), ("z", 2)])})
    positions = grid_of_three.positions((2, 0), grid_of_three.processes())
    assert positions.tolist() == [0, 2, 0, 2, 0, 2, 1, 3, 1, 3, 1, 3]


def test_meshes_of_other_devices() -> None:
    first, next_four = Mesh([("x", 2), ("y", 2)]), Mesh([("z", 4)], [4, 5, 6, 7])
    used = [(first, (AxisRef("x"), AxisRef("y"))), (next_four, (AxisRef("z"),))]
    both = DeviceGrid.for_meshes("first", used, {"first": first, "next": next_four})
    assert both.shape == both.sizes == (2, 2, 2) and both.separate == ()
    assert both.axes_of("first", (AxisRef("x"),)) == (1,)
    assert both.axes_of("next", (AxisRef("z"),)) == (1, 2)
    assert both.processes().tolist() == list(range(8))


def test_a_mesh_that_is_no_part_of_the_grid() -> None:
    eight, six = Mesh([("x", 8)]), Mesh([("y", 2), ("z", 3)], [5, 1, 2, 3, 4, 0])
    used = [(eight, (AxisRef("x"),)), (six, (AxisRef("y"), AxisRef("z")))]
    both = DeviceGrid.for_meshes("eight", used, {"eight": eight, "six": six})
    assert both.shape == (8,) and both.sizes == (8, 2, 3)
    placement = both.placement(TensorSharding.closed_with([[AxisRef("z")], [AxisRef("y")]], "six"), 2)
    assert placement == Placement(((2,), (1,)))
    assert both.separate_mesh(placement) == six and both.separate_mesh(Placement(((0,), ()))) is None
    assert both.local_shape((6, 4), placement) == (2, 2)
    assert both.positions((2,), both.processes()).tolist() == [2, 1, 2, 0, 1, 0, 0, 0]
    layout = both.layout_on(six, placement, (6, 4))
    assert layout.mesh == six and layout.blocks == (3, 2)


@pytest.mark.parametrize(
    ("devices", "is_part"),
    [([4, 5], True), ([6, 7], True), ([5, 6], False), ([1, 5], True), ([5, 4], False), ([3, 4], False)],
)
def test_which_meshes_are_part_of_a_grid_of_eight(devices: list[int], is_part: bool) -> None:
    """A mesh is part of the grid if its devices differ in one digit of their ids and are in ascending order."""
    eight, two = Mesh([("x", 8)]), Mesh([("y", 2)], devices)
    used = [(eight, (AxisRef("x"),)), (two, (AxisRef("y"),))]
    both = DeviceGrid.for_meshes("eight", used, {"eight": eight, "two": two})
    assert (both.separate == ()) == is_part
