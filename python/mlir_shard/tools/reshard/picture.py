# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as an SVG picture: for each stage the tensor on the left and its devices on the right."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import (
    MOST_SLABS,
    DeviceGrid,
    Frame,
    Origin,
    Slab,
    device_colour,
    device_grids,
    dim_cuts,
    origins,
    slabs_of,
    text_width,
)
from mlir_shard.tools.reshard.words import Stage, stages, step_figures, totals

MOST_BLOCKS = 1024
"""How many shards of a tensor are drawn; a tensor of more is an empty frame with their number."""
_MANY = "#d8dee4"
_MOST_STRIPES = 8
_MOST_TICKS = 12
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
_MOST_CODE = 110
"""So many characters of a fixed width are within the picture."""


def svg(plan: Plan, title: str) -> str:
    """The picture, under a title."""
    return _Picture(plan).text(title)


def _add(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """Adds an element; lengths are in pixels, and `kind` is the class."""
    said = {
        {"kind": "class"}.get(name, name): value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        for name, value in attributes.items()
        if value != ""
    }
    element = ElementTree.SubElement(parent, tag, said)
    # XML has no control characters.
    element.text = (
        "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text) or None
    )
    return element


def _rectangle(parent: Element, area: tuple[float, float, float, float], kind: str, fill: str = "") -> None:
    x, y, width, height = area
    _add(parent, "rect", x=x, y=y, width=width, height=height, kind=kind, fill=fill)


class _Picture:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stages = stages(plan)
        self._root = Element("svg", xmlns="http://www.w3.org/2000/svg")
        self._definitions = Element("defs")
        meshes = plan.target.mesh, plan.source.mesh
        devices = dict.fromkeys(device for mesh in meshes for device in mesh.devices)
        self._colours = {device: device_colour(place, len(devices)) for place, device in enumerate(devices)}
        self._slabs = slabs_of(stage.layout for stage in self._stages)
        self._tensor = self._frame(_TENSOR_WIDTH, _TENSOR_HEIGHT, 18, 34)
        self._grid, self._device = max(map(self._fit, device_grids(*meshes)), key=_size)
        self._left = _devices_left(self._grid)
        heading = max(text_width(one, 10) for one in self._grid.column_headings) + 6
        widest = max(self._device.total_width + 26, heading)
        self._across = min((_WIDTH - _MARGIN - self._left) / self._grid.columns, widest)
        self._down = self._device.total_height + 22

    def _frame(self, width: float, height: float, gap: float, row_gap: float) -> Frame:
        return Frame.within(self._plan.source.shape, self._slabs, width, height, gap, row_gap)

    def _fit(self, grid: DeviceGrid) -> tuple[DeviceGrid, Frame]:
        """A grid, and the largest frame for each of its devices."""
        across, down = (_WIDTH - _MARGIN - _devices_left(grid)) / grid.columns, _DEVICES_HEIGHT / grid.rows
        return grid, self._frame(min(across - 14, 150), min(max(down - 22, 14), 96), 3, 3)

    def text(self, title: str) -> str:
        """The SVG file, with a title for those who cannot see it."""
        _add(self._root, "title", title)
        _add(self._root, "style", _STYLE)
        ground = _add(self._root, "rect", x=0.5, y=0.5, width=_WIDTH - 1, rx="8", kind="ground")
        self._root.append(self._definitions)
        y = _MARGIN + 12
        self._text(_MARGIN, y, _fitting(title, 16, _WIDTH - 2 * _MARGIN), "title")
        for line in totals(self._plan):
            y += 18
            self._text(_MARGIN, y, line, "quiet")
        y += 14
        for stage in self._stages:
            _add(self._root, "line", x1=_MARGIN, y1=y, x2=_WIDTH - _MARGIN, y2=y, kind="rule")
            y = self._stage(stage, y + 22) + _SPACE
        for line in self._notes():
            self._text(_MARGIN, y, line, "small")
            y += 14
        width, height = f"{_WIDTH:g}", f"{y + 6:.0f}"
        self._root.attrib |= {"width": width, "height": height, "viewBox": f"0 0 {width} {height}", "role": "img"}
        ground.set("height", str(int(height) - 1))
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"

    def _text(self, x: float, y: float, text: str, kind: str) -> None:
        _add(self._root, "text", text, x=x, y=y, kind=kind)

    def _stage(self, stage: Stage, y: float) -> float:
        self._text(_MARGIN, y, _fitting(stage.heading, 14, _WIDTH - 2 * _MARGIN), "heading")
        self._text(_MARGIN, y + 18, words.cut(stage.placement, _MOST_CODE), "code")
        if stage.step is not None:
            y += 18
            self._text(_MARGIN, y + 18, step_figures(stage.step), "quiet")
        y += _HEAD
        self._draw_tensor(self._group(_TENSOR_LEFT, y), stage.layout)
        self._draw_devices(stage, y)
        return y + max(self._tensor.total_height + 14, self._down * self._grid.rows - 10)

    def _group(self, x: float, y: float) -> Element:
        return _add(self._root, "g", transform=f"translate({x:.2f} {y:.2f})")

    def _draw_tensor(self, group: Element, layout: TensorLayout) -> None:
        """The tensor, each shard with the devices that hold it, and where the shards begin."""
        frame = self._tensor
        if prod(layout.blocks) > MOST_BLOCKS:
            for corner in frame.corners():
                _rectangle(group, (*corner, frame.width, frame.height), "frame")
            blocks = " × ".join(map(str, layout.blocks))
            _add(group, "text", f"{blocks} blocks", x=frame.total_width / 2, y=frame.total_height / 2, kind="middle")
        else:
            holders: defaultdict[Box, list[int]] = defaultdict(list)
            for device, box in layout.device_boxes().items():
                holders[box].append(device)
            drawn = [(area, devices) for box, devices in holders.items() for area in frame.areas(box)]
            labels = [_holder_lines(area, of, words.between_holders(layout, of)) for area, of in drawn]
            # A few numbers among many shards without one are of no use.
            are_labelled = 2 * sum(map(bool, labels)) > len(labels)
            for (area, devices), lines in zip(drawn, labels, strict=True):
                _rectangle(group, area, "block", self._fill(devices, 7))
                if are_labelled:
                    _draw_lines(group, area, lines, has_halo=len(devices) > 1)
        _draw_ticks(group, frame, layout)

    def _draw_devices(self, stage: Stage, y: float) -> None:
        """Every device of the grid, with its box in a small tensor, in tiles by origin."""
        grid, frame = self._grid, self._device
        for column, heading in enumerate(grid.column_headings):
            if text_width(heading, 10) < self._across:
                self._text(self._left + column * self._across + frame.total_width / 2, y - 18, heading, "small middle")
        for row, heading in enumerate(filter(None, grid.row_headings)):
            self._text(self._left - 8, y + row * self._down + frame.total_height / 2 + 4, heading, "small end")
        boxes = stage.layout.device_boxes()
        # Those of the other mesh alone have no box.
        places = {device: divmod(number, grid.columns) for number, device in enumerate(grid.devices) if device in boxes}
        tiles: dict[int, tuple[Origin, ...]] = {device: (Origin(boxes[device], (device,)),) for device in places}
        if stage.step is not None:
            tiles = origins(stage.step.before, stage.layout, places)
        for device, (row, column) in places.items():
            group = self._group(self._left + column * self._across, y + row * self._down)
            # If the tiles are too many to be told apart, the box is from many.
            self._draw_device(group, device, boxes[device], tiles.get(device, (Origin(boxes[device], ()),)))

    def _draw_device(self, group: Element, device: int, box: Box, tiles: Sequence[Origin]) -> None:
        frame = self._device
        if text_width(str(device), 10, is_bold=True) < self._across:
            _add(group, "text", str(device), x=0, y=-3, kind="device")
        for corner in frame.corners():
            _rectangle(group, (*corner, frame.width, frame.height), "frame")
        if not any(frame.areas(box)):
            text = "empty" if box.is_empty else "not drawn"
            if text_width(text, 10) < frame.width and frame.height >= 10:
                _add(group, "text", text, x=frame.width / 2, y=frame.height / 2 + 3.5, kind="small middle")
        for tile in tiles:
            label = "+".join(map(str, tile.senders)) or "many"
            for area in frame.areas(tile.box):
                _rectangle(group, area, "tile", self._fill(tile.senders, 4))
                x, y, width, height = area
                if tile.senders != (device,) and height >= 10 and text_width(label, 9) < width:
                    _add(group, "text", label, x=x + width / 2, y=y + height / 2 + 3.5, kind="sender")

    def _fill(self, devices: Sequence[int], width: float) -> str:
        """The colour of a device, or slanting stripes of so many pixels with those of several."""
        if not 1 <= len(devices) <= _MOST_STRIPES:
            return _MANY
        if len(devices) == 1:
            return self._colours[devices[0]]
        name = "-".join(map(str, ("stripes", round(width), *devices)))
        if not any(pattern.get("id") == name for pattern in self._definitions):
            period = width * len(devices)
            pattern = _add(self._definitions, "pattern", id=name, width=period, height=period)
            pattern.attrib |= {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
            for number, device in enumerate(devices):
                _add(pattern, "rect", x=number * width, width=width, height=period, fill=self._colours[device])
        return f"url(#{name})"

    def _notes(self) -> list[str]:
        notes = [
            "Left: the tensor and the devices that hold each shard. Right: each device with its box. "
            "A tile has the color and the number of the device",
            "that sent it; it has no number if the device held it before. "
            "Stripes or gray: several devices hold the shard; 0+2: their partial sums are pending.",
        ]
        drawn, devices = len(self._grid.devices), len(self._colours)
        if drawn < devices:
            notes.append(f"Drawn are the first {drawn} of {devices} devices.")
        if len(self._slabs) > MOST_SLABS:
            notes.append(f"Drawn are the first {MOST_SLABS} of {len(self._slabs)} slabs of the tensor.")
        return notes


def _devices_left(grid: DeviceGrid) -> float:
    return _TENSOR_LEFT + _TENSOR_WIDTH + 40 + max(text_width(one, 10) for one in grid.row_headings)


def _size(fitted: tuple[DeviceGrid, Frame]) -> int:
    """How large a device is drawn; half of it where a grid is higher than wide, as pictures are high already."""
    grid, frame = fitted
    return round(frame.width * frame.height / (2 if grid.rows > grid.columns else 1))


def _fitting(text: str, size: float, width: float) -> str:
    """The text in bold, with dots for its end where it is wider."""
    most = next((most for most in range(len(text), 1, -1) if text_width(text[:most], size, is_bold=True) <= width), 1)
    return words.cut(text, most)


_Area = tuple[float, float, float, float]


def _holder_lines(area: _Area, devices: Sequence[int], between: str) -> list[str]:
    """The most of the numbers of the devices that the area has room for; none where it has too little."""
    _, _, width, height = area
    per_line, most_lines = int(width / 6.4), int((height + 3) // 15)
    if per_line == 0:
        return []
    texts = [words.devices(devices, most, between) for most in range(min(len(devices), 40), 2, -1)]
    texts.append(between.join(map(str, devices)) if len(devices) < 3 else f"{len(devices)} devices")
    wraps = (textwrap.wrap(text, per_line, break_long_words=False) for text in (*texts, f"{len(devices)}×"))
    return next((lines for lines in wraps if _fit(lines, width) and len(lines) <= most_lines), [])


def _fit(lines: Sequence[str], width: float) -> bool:
    return all(text_width(line, 12) <= width for line in lines)


def _draw_lines(group: Element, area: _Area, lines: Sequence[str], *, has_halo: bool) -> None:
    """Lines of text in the middle of an area."""
    x, y, width, height = area
    first = y + height / 2 + 4 - 7.5 * (len(lines) - 1)
    for number, line in enumerate(lines):
        for kind in ("middle halo", "middle") if has_halo else ("middle",):
            _add(group, "text", line, x=x + width / 2, y=first + 15 * number, kind=kind)


def _draw_ticks(group: Element, frame: Frame, layout: TensorLayout) -> None:
    """Where shards begin and the tensor ends: rows on the left, columns above each slab."""
    for number, ((x, y), slab) in enumerate(zip(frame.corners(), frame.slabs, strict=True)):
        if len(layout.shape) > 1 and number % frame.per_row == 0:
            _draw_row_ticks(group, frame, layout, x, y)
        if layout.shape:
            _draw_column_ticks(group, frame, layout, x, y, is_first=number % frame.per_row == 0)
        room = frame.width + (frame.gap if frame.per_row > 1 else 0)
        title = next((title for title in _slab_titles(slab) if text_width(title, 10) < room), "")
        if title:
            _add(group, "text", title, x=x + frame.width / 2, y=y + frame.height + 12, kind="small middle")


def _draw_row_ticks(group: Element, frame: Frame, layout: TensorLayout, x: float, y: float) -> None:
    size = layout.shape[-2]
    for row in _ticks(size, layout.blocks[-2], frame.height / 11):
        below = row * frame.height / max(size, 1)
        _add(group, "text", _number(row), x=x - 5, y=y + below + 3.5, kind="small end")


def _draw_column_ticks(
    group: Element, frame: Frame, layout: TensorLayout, x: float, y: float, *, is_first: bool
) -> None:
    size = layout.shape[-1]
    last = text_width(_number(size), 10)
    ticks = _ticks(size, layout.blocks[-1], frame.width / (last + 6))
    # The zero is half to the left of the slab, as the size of the slab before is half to the right of that.
    half_zero = text_width("0", 10) / 2
    if half_zero + last / 2 + 2 > frame.width or not (is_first or half_zero + last / 2 + 2 < frame.gap):
        ticks = ticks[1:]
    for column in ticks if last < frame.width + frame.gap else ():
        across = column * frame.width / max(size, 1)
        _add(group, "text", _number(column), x=x + across, y=y - 5, kind="small middle")


def _slab_titles(slab: Slab) -> Iterator[str]:
    """The indices of a slab, the longest text first."""
    if slab:
        intervals = [words.interval(begin, end - begin) for begin, end in slab]
        yield f"[{', '.join([*intervals, ':', ':'])}]"
        yield ", ".join(intervals)
        yield ", ".join(_number(begin) for begin, _ in slab)


def _number(value: int) -> str:
    """An index in the room that there is on the left of the tensor."""
    return str(value) if value < 10**7 else f"{value:.1e}".replace("e+", "e")


def _ticks(size: int, blocks: int, most: float) -> tuple[int, ...]:
    """Where shards begin and the last one ends, or no more than these two."""
    at = (*dim_cuts(size, blocks), size)
    return at if len(at) <= min(most, _MOST_TICKS) else (0, size)
