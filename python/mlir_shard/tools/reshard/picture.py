# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as an SVG picture: for each stage the tensor on the left and its devices on the right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import prod

from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import (
    DeviceGrid,
    Origin,
    Slabs,
    SvgCanvas,
    device_colour,
    device_grids,
    dim_cuts,
    origins,
)
from mlir_shard.tools.reshard.words import Stage, stages, step_figures, totals

MOST_SLABS = 12
"""How many slabs are drawn; the others are counted."""
_LEAST_SIDE = 3.0
_LEAST_RATIO = 0.5
_MOST_RATIO = 2.5


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of a picture, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """The slabs of a tensor in rows of `per_row`, the first at `x` and `y`, each so wide and high, in pixels."""

    slabs: Slabs
    per_row: int
    x: float
    y: float
    width: float
    height: float
    gap: float
    row_gap: float

    @staticmethod
    def within(slabs: Slabs, width: float, height: float, gap: float, row_gap: float) -> Frame:
        """The frame with the largest slabs that is of at most this width and height, at the origin."""
        count = min(len(slabs.slabs), MOST_SLABS)
        frames = []
        for per_row in range(1, count + 1):
            rows = -(-count // per_row)
            across, down = (width - gap * (per_row - 1)) / per_row, (height - row_gap * (rows - 1)) / rows
            frames.append(Frame(slabs, per_row, 0, 0, *_fitted(slabs, across, down), gap, row_gap))
        return max(frames, key=lambda frame: frame.width * frame.height)

    def at(self, x: float, y: float) -> Frame:
        """The frame somewhere else."""
        return replace(self, x=x, y=y)

    @property
    def drawn_slabs(self) -> int:
        """How many slabs are drawn."""
        return min(len(self.slabs.slabs), MOST_SLABS)

    @property
    def total_width(self) -> float:
        """The width of all slabs that are drawn."""
        return self.per_row * (self.width + self.gap) - self.gap

    @property
    def total_height(self) -> float:
        """The height of all slabs that are drawn."""
        return -(-self.drawn_slabs // self.per_row) * (self.height + self.row_gap) - self.row_gap

    def slab(self, number: int) -> Area:
        """A whole slab."""
        row, column = divmod(number, self.per_row)
        x, y = self.x + column * (self.width + self.gap), self.y + row * (self.height + self.row_gap)
        return Area(x, y, self.width, self.height)

    def areas(self, box: Box) -> tuple[Area, ...]:
        """A box of the tensor, on each slab that is drawn and has a part of it; of a size that can be seen."""
        across, down = self.width / max(self.slabs.columns, 1), self.height / max(self.slabs.rows, 1)
        result = []
        for part in self.slabs.rectangles(box):
            if part.slab < MOST_SLABS:
                slab = self.slab(part.slab)
                width, height = max(part.columns * across, _LEAST_SIDE), max(part.rows * down, _LEAST_SIDE)
                x = min(slab.x + part.column * across, slab.x + slab.width - width)
                y = min(slab.y + part.row * down, slab.y + slab.height - height)
                result.append(Area(x, y, width, height))
        return tuple(result)


def _fitted(slabs: Slabs, width: float, height: float) -> tuple[float, float]:
    """The largest slab within this width and height."""
    width, height = max(width, _LEAST_SIDE), max(height, _LEAST_SIDE)
    if len(slabs.shape) < 2:
        return width, min(height, max(width / 6, 16))
    ratio = min(max(max(slabs.columns, 1) / max(slabs.rows, 1), _LEAST_RATIO), _MOST_RATIO)
    width = min(width, height * ratio)
    return width, width / ratio


MOST_BLOCKS = 1024
"""How many blocks of a tensor are drawn; a tensor of more is an empty frame with their number."""
LETTER = 6.4
"""About how wide a character is, in pixels."""
_MANY = "#d8dee4"
_MOST_STRIPES = 8
_MOST_TICKS = 12


class StagePanels:
    """Draws the panels of one stage; `before` is how the tensor lay a step earlier, None where it has not moved."""

    def __init__(self, canvas: SvgCanvas, layout: TensorLayout, before: TensorLayout | None) -> None:
        self._canvas = canvas
        self._layout = layout
        self._before = before
        devices = (*layout.mesh.devices, *(() if before is None else before.mesh.devices))
        self._positions = {device: position for position, device in enumerate(dict.fromkeys(devices))}

    def tensor(self, frame: Frame) -> None:
        """The tensor with its blocks, each with those who hold it."""
        if prod(self._layout.blocks) > MOST_BLOCKS:
            for number in range(frame.drawn_slabs):
                self._area(frame.slab(number), "frame", "")
            blocks = " × ".join(map(str, self._layout.blocks))
            x, y = frame.x + frame.total_width / 2, frame.y + frame.total_height / 2
            self._canvas.text(x, y, f"{blocks} blocks", "middle")
        else:
            self._blocks(frame)
        self._ticks(frame)

    def _blocks(self, frame: Frame) -> None:
        holders: defaultdict[Box, list[int]] = defaultdict(list)
        for device, box in self._layout.device_boxes().items():
            holders[box].append(device)
        for box, devices in holders.items():
            for area in frame.areas(box):
                self._area(area, "block", self._fill(devices, 7))
                self._label(area, devices)

    def _label(self, area: Area, devices: list[int]) -> None:
        if area.height < 12:
            return
        per_line = max(int(area.width / LETTER) - 1, 0)
        lines = max(int(area.height // 15), 1)
        between = words.between_holders(self._layout, devices)
        texts = [words.devices(devices, most, between) for most in range(min(len(devices), 40), 2, -1)]
        texts.append(between.join(map(str, devices)) if len(devices) < 3 else f"{len(devices)} devices")
        text = next((one for one in texts if len(one) <= per_line * lines), f"{len(devices)}×")
        wrapped = _wrapped(text, per_line)
        if len(wrapped) > lines or max(map(len, wrapped)) > per_line + 1:
            return
        y = area.y + area.height / 2 + 4 - 7.5 * (len(wrapped) - 1)
        for number, line in enumerate(wrapped):
            if len(devices) > 1:
                self._canvas.text(area.x + area.width / 2, y + 15 * number, line, "middle halo")
            self._canvas.text(area.x + area.width / 2, y + 15 * number, line, "middle")

    def _ticks(self, frame: Frame) -> None:
        """Where blocks begin and the tensor ends: rows on the left, columns above each slab."""
        shape, blocks = self._layout.shape, self._layout.blocks
        if not shape:
            return
        for number in range(frame.drawn_slabs):
            area = frame.slab(number)
            if len(shape) > 1 and number % frame.per_row == 0:
                for row in _ticks(shape[-2], blocks[-2], area.height / 11):
                    y = area.y + row * area.height / max(shape[-2], 1)
                    self._canvas.text(area.x - 5, y + 3.5, str(row), "small end")
            for column in _ticks(shape[-1], blocks[-1], area.width / (6 * len(str(shape[-1])) + 6)):
                x = area.x + column * area.width / max(shape[-1], 1)
                self._canvas.text(x, area.y - 5, str(column), "small middle")
            if frame.slabs.slabs[number] and area.width > 28:
                leading = (words.interval(begin, end - begin) for begin, end in frame.slabs.slabs[number])
                title = ", ".join([*leading, ":", ":"])
                self._canvas.text(area.x + area.width / 2, area.y + area.height + 12, f"[{title}]", "small middle")

    def devices(self, grid: DeviceGrid, frame: Frame, area: Area) -> None:
        """Every device of the grid, with its box in a small tensor."""
        across, down = area.width / grid.columns, area.height / grid.rows
        for column, heading in enumerate(grid.column_headings):
            if len(heading) * 5.8 < across:
                x = area.x + column * across + frame.total_width / 2
                self._canvas.text(x, area.y - 18, heading, "small middle")
        for row, heading in enumerate(grid.row_headings):
            self._canvas.text(area.x - 8, area.y + row * down + frame.total_height / 2 + 4, heading, "small end")
        boxes = self._layout.device_boxes()
        if self._before is None:
            tiles: dict[int, tuple[Origin, ...]] = {
                device: (Origin(boxes[device], (device,)),) for device in grid.devices if device in boxes
            }
        else:
            tiles = origins(self._before, self._layout, [device for device in grid.devices if device in boxes])
        for number, device in enumerate(grid.devices):
            if device not in boxes:
                # It is in another mesh.
                continue
            row, column = divmod(number, grid.columns)
            own = frame.at(area.x + column * across, area.y + row * down)
            # Of too many tiles to be told apart, the box is from many.
            self._device(device, own, boxes[device], tiles.get(device, (Origin(boxes[device], ()),)))

    def _device(self, device: int, frame: Frame, box: Box, tiles: tuple[Origin, ...]) -> None:
        self._canvas.text(frame.x, frame.y - 3, str(device), "device")
        if not frame.areas(box):
            said = "empty" if box.is_empty else "not drawn"
            self._canvas.text(frame.x + frame.total_width, frame.y - 3, said, "small end")
        for number in range(frame.drawn_slabs):
            self._area(frame.slab(number), "frame", "")
        for tile in tiles:
            for area in frame.areas(tile.box):
                self._area(area, "tile", self._fill(list(tile.senders), 4))
                label = "+".join(map(str, tile.senders)) or "many"
                is_sent = tile.senders != (device,)
                if is_sent and area.height >= 10 and len(label) * 5.4 < area.width:
                    self._canvas.text(area.x + area.width / 2, area.y + area.height / 2 + 3.5, label, "sender")

    def _fill(self, devices: list[int], stripe: float) -> str:
        if not 1 <= len(devices) <= _MOST_STRIPES:
            return _MANY
        colours = [device_colour(self._positions[device], len(self._positions)) for device in devices]
        return colours[0] if len(colours) == 1 else self._canvas.stripes(tuple(colours), stripe)

    def _area(self, area: Area, kind: str, fill: str) -> None:
        self._canvas.rectangle(area.x, area.y, area.width, area.height, kind=kind, fill=fill)


def _ticks(size: int, blocks: int, most: float) -> tuple[int, ...]:
    """Where blocks begin and the last one ends, or no more than these two."""
    at = (*dim_cuts(size, blocks), size)
    return at if len(at) <= min(most, _MOST_TICKS) else (0, size)


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


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
        fitted = [self._fit(grid) for grid in device_grids(plan.target.mesh, plan.source.mesh)]
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
        drawn, devices = len(self._grid.devices), len(self._plan.target.mesh.devices_with(self._plan.source.mesh))
        if drawn < devices:
            notes.append(f"Drawn are the first {drawn} of {devices} devices.")
        if len(self._slabs.slabs) > MOST_SLABS:
            notes.append(f"Drawn are the first {MOST_SLABS} of {len(self._slabs.slabs)} slabs of the tensor.")
        return notes
