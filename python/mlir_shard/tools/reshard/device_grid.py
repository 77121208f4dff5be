# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices of a mesh in rows and columns: its first axes down, the others across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir_shard.sharding import Mesh, MeshAxis
from mlir_shard.sharding.layout import device_coordinates

MOST_DEVICES = 64
"""How many devices are drawn; the others are counted."""

_MOST_COLUMNS = 16
_MOST_ROWS = 8
_WRAPPED_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """Devices in rows of `columns`. Row and column headings are places along axes, empty where these are not."""

    devices: tuple[int, ...]
    columns: int
    row_headings: tuple[str, ...]
    column_headings: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return -(-len(self.devices) // self.columns)


def device_grids(mesh: Mesh) -> tuple[DeviceGrid, ...]:
    """The grids that can be drawn, of at most `MOST_DEVICES` devices; those nearest to a square first."""
    grids = [
        _grid(mesh, number)
        for number in range(len(mesh.axes) + 1)
        if _size(mesh.axes[number:]) <= _MOST_COLUMNS and _size(mesh.axes[:number]) <= _MOST_ROWS
    ]
    return tuple(sorted(grids, key=lambda grid: abs(grid.columns - grid.rows))) or (_wrapped(mesh),)


def _grid(mesh: Mesh, number: int) -> DeviceGrid:
    """The first axes, so many, down and the others across."""
    down, across = mesh.axes[:number], mesh.axes[number:]
    columns = _size(across)
    rows = min(_size(down), max(MOST_DEVICES // columns, 1))
    shown = mesh.devices[: rows * columns]
    places = [device_coordinates(mesh, device) for device in shown]
    return DeviceGrid(
        shown,
        columns,
        tuple(_heading(down, places[row * columns][:number]) for row in range(rows)),
        tuple(_heading(across, places[column][number:]) for column in range(columns)),
    )


def _wrapped(mesh: Mesh) -> DeviceGrid:
    """Rows that end where there is no place for more."""
    shown = mesh.devices[:MOST_DEVICES]
    rows = -(-len(shown) // _WRAPPED_COLUMNS)
    return DeviceGrid(shown, _WRAPPED_COLUMNS, ("",) * rows, ("",) * _WRAPPED_COLUMNS)


def _size(axes: Sequence[MeshAxis]) -> int:
    return prod(axis.size for axis in axes)


def _heading(axes: Sequence[MeshAxis], place: Sequence[int]) -> str:
    return " ".join(f"{axis.name}={index}" for axis, index in zip(axes, place, strict=True))
