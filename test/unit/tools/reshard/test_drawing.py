# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the drawing of a tensor and its devices: slabs and areas, origins of tiles, grids of devices."""

from __future__ import annotations

import pytest

from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard.drawing import (
    MOST_DEVICES,
    MOST_SLABS,
    DeviceGrid,
    Frame,
    Origin,
    Slab,
    device_colour,
    device_grids,
    origins,
    slabs_of,
)
from mlir_shard.tools.reshard.notation import read_mesh, read_sharding


def layout(mesh: str, shape: tuple[int, ...], sharding: str) -> TensorLayout:
    devices = read_mesh(mesh)
    return TensorLayout(read_sharding(sharding, devices), devices, shape)


def frame(shape: tuple[int, ...], slabs: tuple[Slab, ...]) -> Frame:
    """Returns a frame of all slabs in one row without gaps, at ten pixels per element."""
    rows, columns = (1, 1, *shape)[-2:]
    return Frame(shape, slabs, len(slabs), 10 * columns, 10 * rows, 0, 0)


def test_slabs_are_cut_where_any_layout_cuts() -> None:
    layouts = [layout("2x3", (6, 4, 8), "[[0], [], []]"), layout("2x3", (6, 4, 8), "[[1], [], [0]]")]
    slabs = slabs_of(layouts)
    assert slabs == (((0, 2),), ((2, 3),), ((3, 4),), ((4, 6),))
    areas = list(frame((6, 4, 8), slabs).areas(Box((2, 0, 4), (2, 4, 4))))
    assert areas == [(80 + 40, 0, 40, 40), (160 + 40, 0, 40, 40)]


@pytest.mark.parametrize(
    ("shape", "box", "area"),
    [
        ((), Box((), ()), (0, 0, 10, 10)),
        ((8,), Box((2,), (3,)), (20, 0, 30, 10)),
        ((4, 8), Box((1, 2), (2, 3)), (20, 10, 30, 20)),
    ],
)
def test_tensors_of_low_rank_are_one_slab(
    shape: tuple[int, ...], box: Box, area: tuple[float, float, float, float]
) -> None:
    slabs = slabs_of([layout("2", shape, str([[]] * len(shape)))])
    assert list(frame(shape, slabs).areas(box)) == [area]


def test_an_empty_box_has_no_area() -> None:
    slabs = slabs_of([layout("2", (1, 4), "[[0], []]")])
    assert not list(frame((1, 4), slabs).areas(Box((1, 0), (0, 4))))


@pytest.mark.parametrize(
    ("mesh", "shape", "before", "after"),
    [
        ("2x3", (12, 18), "[[0], [1]]", "[[1], [0]]"),
        ("2x3", (5, 7), "[[0], []]", "[[], [1, 0]]"),
        ("2x2x2", (4, 4, 4), "[[2, 1], [], [0]]", "[[0], [1], []]"),
    ],
)
def test_origins_are_those_of_the_direct_exchange(mesh: str, shape: tuple[int, ...], before: str, after: str) -> None:
    source, target = layout(mesh, shape, before), layout(mesh, shape, after)
    moving = direct_exchange(source, target).moving
    expected = {
        (message.receiver, Origin(tile.box, (message.sender,)))
        for message in (*moving.copies, *moving.messages)
        for tile in message.tiles
    }
    found = origins(source, target, source.mesh.devices)
    assert {(device, origin) for device, tiles in found.items() for origin in tiles} == expected


def test_reduced_tiles_are_from_all_that_hold_a_part() -> None:
    source, target = layout("2x2", (4, 4), "[[], [1]], unreduced=[0]"), layout("2x2", (4, 4), "[[0], [1]]")
    assert origins(source, target, (3,)) == {3: (Origin(Box((2, 2), (2, 2)), (1, 3)),)}


def grids(mesh: str) -> tuple[DeviceGrid, ...]:
    return device_grids(read_mesh(mesh), read_mesh(mesh))


def test_devices_are_drawn_near_to_a_square_and_headed_by_their_places() -> None:
    grid = grids("x=2,y=3")[0]
    assert (grid.rows, grid.columns) == (2, 3)
    assert grid.row_headings == ("x=0", "x=1")
    assert grid.column_headings == ("y=0", "y=1", "y=2")
    assert grids("a=2,b=2,c=2")[0].columns in (2, 4)


@pytest.mark.parametrize("mesh", ["4096", "64x64", "3x5x7x11", "1x1x100"])
def test_of_many_devices_the_first_are_drawn(mesh: str) -> None:
    for grid in grids(mesh):
        assert 0 < len(grid.devices) <= MOST_DEVICES
        assert grid.devices == read_mesh(mesh).devices[: len(grid.devices)]
        assert len(grid.row_headings) == grid.rows


def test_frames_fit() -> None:
    for shape in ((), (7,), (1, 1000), (1000, 1), (0, 4), (9, 4, 4), (64, 2, 2)):
        slabs = slabs_of([layout("4", shape, str([[0]][: len(shape)] + [[]] * (len(shape) - 1)))])
        frame = Frame.within(shape, slabs, 200, 100, 2, 2)
        assert frame.total_width <= 200 + 1e-6
        assert frame.total_height <= 100 + 1e-6
        assert all(x + frame.width <= 200 + 1e-6 for x, _ in frame.corners())
        assert len(frame.slabs) <= MOST_SLABS


def test_colours_differ() -> None:
    for count in (2, 6, 12, 64):
        assert len({device_colour(position, count) for position in range(count)}) == count
    assert device_colour(3, 6) != device_colour(3, 6, is_text=True)
