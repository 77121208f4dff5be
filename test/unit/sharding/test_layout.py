# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the elements that devices hold: by example, and against the invariants of layouts."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axes, axis, meshes, sharding, shardings

from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, TensorSharding
from mlir_shard.sharding.axes import split_mesh_axes, total_size
from mlir_shard.sharding.layout import (
    Box,
    axis_coordinate,
    device_at,
    device_box,
    device_coordinates,
    device_groups,
    devices_by_box,
    unreduced_index,
)

MESH = Mesh([("x", 2), ("y", 4)])


def test_boxes():
    box = Box((2, 0), (3, 4))
    assert box.stop == (5, 4) and box.num_elements == 12 and not box.is_empty
    assert box.slices == (slice(2, 5), slice(0, 4)) and box.local_slices == (slice(0, 3), slice(0, 4))
    assert box.contains((4, 3)) and not box.contains((5, 3))
    assert box.intersection(Box((4, 2), (9, 1))) == Box((4, 2), (1, 1))
    assert box.intersection(Box((7, 0), (1, 4))).is_empty
    assert Box((), ()).num_elements == 1


def test_coordinates():
    assert device_coordinates(MESH, 6) == (1, 2)
    reordered = Mesh(MESH.axes, [7, 6, 5, 4, 3, 2, 1, 0])
    assert device_coordinates(reordered, 6) == (0, 1)
    assert device_at(reordered, (0, 1)) == 6
    assert [axis_coordinate(axis("y:(1)2"), MESH, (0, y)) for y in range(4)] == [0, 0, 1, 1]
    assert [axis_coordinate(axis("y:(2)2"), MESH, (0, y)) for y in range(4)] == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="device 8 is not in the mesh"):
        device_coordinates(MESH, 8)


def test_major_axis_first():
    some = sharding("y x", "")
    assert [device_box(some, MESH, (8, 3), device).start[0] for device in range(8)] == [0, 2, 4, 6, 1, 3, 5, 7]


def test_short_and_empty_blocks():
    some = sharding("y")
    assert [device_box(some, MESH, (5,), device) for device in range(4)] == [
        Box((0,), (2,)),
        Box((2,), (2,)),
        Box((4,), (1,)),
        Box((5,), (0,)),
    ]
    assert devices_by_box(some, MESH, (5,))[Box((4,), (1,))] == (2, 6)


def test_partial_values():
    some = sharding("y", unreduced="x")
    assert [unreduced_index(some, MESH, device) for device in range(8)] == [0] * 4 + [1] * 4
    assert devices_by_box(some, MESH, (4,)) == {Box((i,), (1,)): (i, i + 4) for i in range(4)}


def test_maximal_mesh_holds_all_on_one_device():
    mesh = Mesh.maximal(3)
    assert devices_by_box(sharding(), mesh, (4, 5)) == {Box((0, 0), (4, 5)): (3,)}
    with pytest.raises(ValueError, match="device 0 is not in the mesh"):
        device_box(sharding(), mesh, (4, 5), 0)


def test_rank_has_to_fit():
    with pytest.raises(ValueError, match="rank 1 does not fit a tensor of rank 2"):
        device_box(sharding("x"), MESH, (4, 4), 0)


def test_device_groups():
    assert device_groups(axes("x"), MESH) == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert device_groups(axes("y:(1)2"), MESH) == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert device_groups(axes("y:(2)2 x"), MESH) == ((0, 4, 1, 5), (2, 6, 3, 7))
    assert device_groups((), MESH) == tuple((device,) for device in range(8))
    assert device_groups(axes("y"), Mesh(MESH.axes, [7, 6, 5, 4, 3, 2, 1, 0])) == ((7, 6, 5, 4), (3, 2, 1, 0))


@st.composite
def layouts(draw):
    mesh = draw(meshes())
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=0, max_size=3)))
    return draw(shardings(mesh, len(shape))), mesh, shape


@given(layouts())
def test_boxes_tile_the_tensor_once(layout):
    some, mesh, shape = layout
    boxes = [box for box in devices_by_box(some, mesh, shape) if not box.is_empty]
    for index in product(*map(range, shape)):
        assert sum(box.contains(index) for box in boxes) == 1
    assert sum(box.num_elements for box in boxes) == prod(shape)


@given(layouts())
def test_each_box_has_equally_many_devices(layout):
    some, mesh, shape = layout
    replicas = mesh.total_size // total_size(some.sharding_axes, mesh)
    for box, devices in devices_by_box(some, mesh, shape).items():
        assert len(devices) == replicas or (box.is_empty and len(devices) % replicas == 0)


@given(layouts())
def test_boxes_fit_the_local_shape(layout):
    some, mesh, shape = layout
    local = some.local_shape(shape, mesh)
    for box in devices_by_box(some, mesh, shape):
        assert all(size <= block for size, block in zip(box.size, local, strict=True))
    assert device_box(some, mesh, shape, mesh.devices[0]) == Box((0,) * len(shape), local)


@given(layouts())
def test_sub_axes_are_the_axes_of_a_finer_mesh(layout):
    some, mesh, shape = layout
    parts = split_mesh_axes(some.used_axes, mesh)
    finer = Mesh(((str(part), part.size(mesh)) for part in parts), mesh.device_ids)

    def as_full(dim_sharding):
        full = [AxisRef(str(part)) for a in dim_sharding.axes for part in parts if a.contains(part)]
        return DimensionSharding(tuple(full), True)

    on_finer = TensorSharding("finer", tuple(map(as_full, some.dim_shardings)))
    for device in mesh.devices:
        assert device_box(on_finer, finer, shape, device) == device_box(some, mesh, shape, device)


@given(layouts())
def test_each_box_has_all_its_partial_values(layout):
    some, mesh, shape = layout
    holders = devices_by_box(some, mesh, shape)
    partials = set(range(total_size(some.unreduced_axes, mesh)))
    assert sum(box.num_elements for box in holders) == prod(shape)
    for box, devices in holders.items():
        assert {unreduced_index(some, mesh, device) for device in devices} == partials
        assert all(device_box(some, mesh, shape, device) == box for device in devices)


@given(layouts())
def test_groups_along_the_sharding_axes_hold_a_whole_tensor(layout):
    some, mesh, shape = layout
    groups = device_groups(some.sharding_axes, mesh)
    assert sorted(device for group in groups for device in group) == sorted(mesh.devices)
    for group in groups:
        boxes = [device_box(some, mesh, shape, device) for device in group]
        assert sum(box.num_elements for box in boxes) == prod(shape)
