# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as an SVG picture: for each stage the tensor on the left and its devices on the right.

The tensor shows who holds each block. A device shows its box, and what of it came from whom: a tile has the colour of
the device that sent it. The picture brings its own light ground, so it reads on any page.
"""

from __future__ import annotations

from mlir_shard.resharding.plan import Plan
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.device_grid import DeviceGrid, device_grids
from mlir_shard.tools.reshard.frame import MOST_SLABS, Area, Frame
from mlir_shard.tools.reshard.slabs import Slabs
from mlir_shard.tools.reshard.stage_panels import StagePanels
from mlir_shard.tools.reshard.stages import Stage, stages, step_figures, totals
from mlir_shard.tools.reshard.svg_canvas import SvgCanvas

_STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
.ground { fill: #ffffff; stroke: #d0d7de }
.title { font-size: 16px; font-weight: 600 }
.heading { font-size: 14px; font-weight: 600 }
.code { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.quiet { fill: #59636e }
.small { font-size: 10px; fill: #59636e }
.device { font-size: 10px; font-weight: 600 }
.sender { font-size: 9px; text-anchor: middle }
.middle { text-anchor: middle }
.end { text-anchor: end }
.block { stroke: #1f2328 }
.tile { stroke: #1f2328; stroke-width: .6 }
.frame { fill: #f0f2f4; stroke: #afb8c1; stroke-width: .8 }
.halo { stroke: #ffffff; stroke-width: 3; stroke-linejoin: round }
.rule { stroke: #d0d7de }
"""

_WIDTH = 880.0
_MARGIN = 28.0
_TENSOR_WIDTH = 230.0
_TENSOR_HEIGHT = 190.0
_TENSOR_LEFT = _MARGIN + 24
_DEVICES_HEIGHT = 400.0
_HEAD = 54.0
_SPACE = 20.0
_LETTER = 5.8
# So many characters are within the picture.
_MOST_TITLE = 84
_MOST_HEADING = 98
_MOST_CODE = 110


def svg(plan: Plan, title: str) -> str:
    """The picture, under a title."""
    return _Picture(plan).text(title)


def _size(fitted: tuple[DeviceGrid, Frame]) -> int:
    """How large a device is drawn; half of it where a grid is higher than wide, as pictures are high already."""
    grid, frame = fitted
    return round(frame.width * frame.height / (2 if grid.rows > grid.columns else 1))


class _Picture:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stages = stages(plan)
        self._canvas = SvgCanvas()
        slabs = Slabs.of(stage.layout for stage in self._stages)
        self._slabs = slabs
        self._tensor = Frame.within(slabs, _TENSOR_WIDTH, _TENSOR_HEIGHT, 18, 34)
        fitted = [self._fit(grid) for grid in device_grids(plan.target.mesh)]
        self._grid, self._device = max(fitted, key=_size)
        self._left = self._devices_left(self._grid)
        across = (_WIDTH - _MARGIN - self._left) / self._grid.columns
        heading = _LETTER * max(map(len, self._grid.column_headings)) + 10
        self._across = min(across, max(self._device.total_width + 26, heading))
        self._down = self._device.total_height + 22

    def _fit(self, grid: DeviceGrid) -> tuple[DeviceGrid, Frame]:
        """A grid, and the largest frame for each of its devices."""
        across = (_WIDTH - _MARGIN - self._devices_left(grid)) / grid.columns
        down = _DEVICES_HEIGHT / grid.rows
        return grid, Frame.within(self._slabs, min(across - 14, 150), min(max(down - 22, 14), 96), 3, 3)

    def _devices_left(self, grid: DeviceGrid) -> float:
        return _TENSOR_LEFT + _TENSOR_WIDTH + 40 + _LETTER * max(map(len, grid.row_headings))

    def text(self, title: str) -> str:
        y = _MARGIN + 12
        self._canvas.text(_MARGIN, y, words.cut(title, _MOST_TITLE), "title")
        for line in totals(self._plan):
            y += 18
            self._canvas.text(_MARGIN, y, line, "quiet")
        y += 14
        for stage in self._stages:
            self._canvas.line(_MARGIN, y, _WIDTH - _MARGIN, y, "rule")
            y = self._stage(stage, y + 22) + _SPACE
        for line in self._notes():
            self._canvas.text(_MARGIN, y, line, "small")
            y += 14
        return self._canvas.picture(_WIDTH, y + 6, title, _STYLE)

    def _stage(self, stage: Stage, y: float) -> float:
        self._canvas.text(_MARGIN, y, words.cut(stage.heading, _MOST_HEADING), "heading")
        self._canvas.text(_MARGIN, y + 18, words.cut(stage.placement, _MOST_CODE), "code")
        if stage.step is not None:
            y += 18
            self._canvas.text(_MARGIN, y + 18, step_figures(stage.step), "quiet")
        before = None if stage.step is None else stage.step.before
        panels = StagePanels(self._canvas, stage.layout, before)
        top = y + _HEAD
        panels.tensor(self._tensor.at(_TENSOR_LEFT, top))
        area = Area(self._left, top, self._across * self._grid.columns, self._down * self._grid.rows)
        panels.devices(self._grid, self._device, area)
        return top + max(self._tensor.total_height + 14, area.height - 10)

    def _notes(self) -> list[str]:
        notes = [
            "Left: the tensor, and which devices hold each block. Right: each device with its box. "
            "A tile has the colour and number of the device",
            "that sent it, and no number where the device had it already. "
            "Stripes, or grey: several devices hold the block; 0+2: what they hold is to be reduced.",
        ]
        drawn, devices = len(self._grid.devices), self._plan.target.mesh.total_size
        if drawn < devices:
            notes.append(f"Drawn are the first {drawn} of {devices} devices.")
        if len(self._slabs.slabs) > MOST_SLABS:
            notes.append(f"Drawn are the first {MOST_SLABS} of {len(self._slabs.slabs)} slabs of the tensor.")
        return notes
