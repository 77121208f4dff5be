# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as an SVG picture: for each stage the tensor on the left and its devices on the right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from xml.etree.ElementTree import Element

from mlir_shard.resharding.plan import Plan
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import (
    MOST_SLABS,
    DeviceGrid,
    Frame,
    Origin,
    device_grids,
    origins,
    slabs_of,
    text_width,
)
from mlir_shard.tools.reshard.tensor_picture import MARGIN, WIDTH, Canvas, add, draw_tensor, fitting, rectangle
from mlir_shard.tools.reshard.words import Stage, stages, step_figures, totals

_TENSOR_WIDTH = 230.0
_TENSOR_HEIGHT = 190.0
_TENSOR_LEFT = MARGIN + 24
_DEVICES_HEIGHT = 400.0
_HEAD = 54.0
_SPACE = 20.0
_MOST_CODE = 110
"""The maximum number of fixed-width characters in a line of the picture."""


def svg(plan: Plan, title: str) -> str:
    """Returns the picture of a plan, with a title."""
    return _Picture(plan).text(title)


class _Picture:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stages = stages(plan)
        meshes = plan.target.mesh, plan.source.mesh
        devices = dict.fromkeys(device for mesh in meshes for device in mesh.devices)
        self._canvas, self._devices = Canvas(tuple(devices)), len(devices)
        self._slabs = slabs_of(stage.layout for stage in self._stages)
        self._tensor = self._frame(_TENSOR_WIDTH, _TENSOR_HEIGHT, 18, 34)
        self._grid, self._device = max(map(self._fit, device_grids(*meshes)), key=_size)
        self._left = _devices_left(self._grid)
        heading = max(text_width(one, 10) for one in self._grid.column_headings) + 6
        widest = max(self._device.total_width + 26, heading)
        self._across = min((WIDTH - MARGIN - self._left) / self._grid.columns, widest)
        self._down = self._device.total_height + 22

    def _frame(self, width: float, height: float, gap: float, row_gap: float) -> Frame:
        return Frame.within(self._plan.source.shape, self._slabs, width, height, gap, row_gap)

    def _fit(self, grid: DeviceGrid) -> tuple[DeviceGrid, Frame]:
        """Returns a grid, and the largest frame for each of its devices."""
        across, down = (WIDTH - MARGIN - _devices_left(grid)) / grid.columns, _DEVICES_HEIGHT / grid.rows
        return grid, self._frame(min(across - 14, 150), min(max(down - 22, 14), 96), 3, 3)

    def text(self, title: str) -> str:
        """Returns the SVG file."""
        rows = (partial(self._stage, stage) for stage in self._stages)
        return self._canvas.page(title, totals(self._plan), rows, self._notes())

    def _stage(self, stage: Stage, y: float) -> float:
        self._canvas.write(MARGIN, y, fitting(stage.heading, 14, WIDTH - 2 * MARGIN), "heading")
        self._canvas.write(MARGIN, y + 18, words.cut(stage.placement, _MOST_CODE), "code")
        if stage.step is not None:
            y += 18
            self._canvas.write(MARGIN, y + 18, step_figures(stage.step), "quiet")
        y += _HEAD
        draw_tensor(self._canvas, self._canvas.group(_TENSOR_LEFT, y), self._tensor, stage.layout)
        self._draw_devices(stage, y)
        return y + max(self._tensor.total_height + 14, self._down * self._grid.rows - 10) + _SPACE

    def _draw_devices(self, stage: Stage, y: float) -> None:
        """Draws every device of the grid, with its box in a small tensor, in tiles by origin."""
        grid, frame = self._grid, self._device
        for column, heading in enumerate(grid.column_headings):
            if text_width(heading, 10) < self._across:
                x = self._left + column * self._across + frame.total_width / 2
                self._canvas.write(x, y - 18, heading, "small middle")
        for row, heading in enumerate(filter(None, grid.row_headings)):
            self._canvas.write(self._left - 8, y + row * self._down + frame.total_height / 2 + 4, heading, "small end")
        boxes = stage.layout.device_boxes()
        # Devices that are only in the other mesh have no box.
        places = {device: divmod(number, grid.columns) for number, device in enumerate(grid.devices) if device in boxes}
        tiles: dict[int, tuple[Origin, ...]] = {device: (Origin(boxes[device], (device,)),) for device in places}
        if stage.step is not None:
            tiles = origins(stage.step.before, stage.layout, places)
        for device, (row, column) in places.items():
            group = self._canvas.group(self._left + column * self._across, y + row * self._down)
            # A box with too many tiles is drawn as one tile from many devices.
            self._draw_device(group, device, boxes[device], tiles.get(device, (Origin(boxes[device], ()),)))

    def _draw_device(self, group: Element, device: int, box: Box, tiles: Sequence[Origin]) -> None:
        frame = self._device
        if text_width(str(device), 10, is_bold=True) < self._across:
            add(group, "text", str(device), x=0, y=-3, kind="device")
        for corner in frame.corners():
            rectangle(group, (*corner, frame.width, frame.height), "frame")
        if not any(frame.areas(box)):
            text = "empty" if box.is_empty else "not drawn"
            if text_width(text, 10) < frame.width and frame.height >= 10:
                add(group, "text", text, x=frame.width / 2, y=frame.height / 2 + 3.5, kind="small middle")
        for tile in tiles:
            label = "+".join(map(str, tile.senders)) or "many"
            for area in frame.areas(tile.box):
                rectangle(group, area, "tile", self._canvas.fill(tile.senders, 4))
                x, y, width, height = area
                if tile.senders != (device,) and height >= 10 and text_width(label, 9) < width:
                    add(group, "text", label, x=x + width / 2, y=y + height / 2 + 3.5, kind="sender")

    def _notes(self) -> list[str]:
        notes = [
            "Left: the tensor and the devices that hold each shard. Right: each device with its box. "
            "A tile has the color and the number of the device",
            "that sent it; it has no number if the device held it before. "
            "Stripes or gray: several devices hold the shard; 0+2: their partial sums are pending.",
        ]
        drawn = len(self._grid.devices)
        if drawn < self._devices:
            notes.append(f"Only the first {drawn} of {self._devices} devices are drawn.")
        if len(self._slabs) > MOST_SLABS:
            notes.append(f"Only the first {MOST_SLABS} of {len(self._slabs)} slabs of the tensor are drawn.")
        return notes


def _devices_left(grid: DeviceGrid) -> float:
    return _TENSOR_LEFT + _TENSOR_WIDTH + 40 + max(text_width(one, 10) for one in grid.row_headings)


def _size(fitted: tuple[DeviceGrid, Frame]) -> int:
    """Returns the area of a drawn device; half of it if the grid is higher than wide, as pictures are high already."""
    grid, frame = fitted
    return round(frame.width * frame.height / (2 if grid.rows > grid.columns else 1))
