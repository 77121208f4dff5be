# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sharded tensor as a part of an SVG picture: each shard with the devices that hold it."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import Frame, Slab, device_colour, dim_cuts, text_width

MOST_BLOCKS = 1024
"""The maximum number of drawn shards; a tensor with more is drawn as an empty frame with their number."""
WIDTH = 880.0
"""The width of a page, in pixels."""
MARGIN = 28.0
_MANY = "#d8dee4"
_MOST_STRIPES = 8
_MOST_TICKS = 12
STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
.ground { fill: #ffffff; stroke: #d0d7de }
.title { font-size: 16px; font-weight: 600 }
.heading { font-size: 14px; font-weight: 600 }
.code { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.quiet { fill: #59636e }
.small { font-size: 10px; fill: #59636e }
.name { font-weight: 600 }
.collective { fill: #0a5fc4 }
.device { font-size: 10px; font-weight: 600 }
.sender { font-size: 9px; text-anchor: middle }
.middle { text-anchor: middle }
.end { text-anchor: end }
.block { stroke: #1f2328 }
.tile { stroke: #1f2328; stroke-width: .6 }
.frame { fill: #f0f2f4; stroke: #afb8c1; stroke-width: .8 }
.halo { stroke: #ffffff; stroke-width: 3; stroke-linejoin: round }
.rule { stroke: #d0d7de }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .ground { fill: #161b22; stroke: #3d444d }
  .quiet, .small { fill: #9198a1 }
  .collective { fill: #6cb0ff }
  .sender, .held { fill: #1f2328 }
  .frame { fill: #262c36; stroke: #656c76 }
  .rule { stroke: #3d444d }
}
"""
"""The classes of elements. Tiles are always light, with dark text on them; their surroundings follow the theme of the
reader."""


def add(parent: Element, tag: str, text: str = "", **attributes: str | float) -> Element:
    """Adds an element; lengths are in pixels, and `kind` is the class."""
    said = {
        {"kind": "class"}.get(name, name): value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
        for name, value in attributes.items()
        if value != ""
    }
    element = ElementTree.SubElement(parent, tag, said)
    # XML does not allow control characters.
    element.text = (
        "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text) or None
    )
    return element


def rectangle(parent: Element, area: tuple[float, float, float, float], kind: str, fill: str = "") -> None:
    """Adds a rectangle; `area` is its x, y, width and height."""
    x, y, width, height = area
    add(parent, "rect", x=x, y=y, width=width, height=height, kind=kind, fill=fill)


class Canvas:
    """A page as an SVG element, with the colours of devices and patterns of stripes for several devices.

    Args:
        devices: the devices in the order of their colours.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        self.root = Element("svg", xmlns="http://www.w3.org/2000/svg")
        self._definitions = Element("defs")
        self._colours = {device: device_colour(place, len(devices)) for place, device in enumerate(devices)}

    def page(
        self, title: str, facts: Iterable[str], rows: Iterable[Callable[[float], float]], notes: Iterable[str]
    ) -> str:
        """Draws the page and returns the SVG file.

        Args:
            title: the text at the top, which is also read by screen readers.
            facts: lines below the title.
            rows: functions that draw the part below a rule, from the height in the argument, and return its end.
            notes: lines at the end.
        """
        add(self.root, "title", title)
        add(self.root, "style", STYLE)
        ground = add(self.root, "rect", x=0.5, y=0.5, width=WIDTH - 1, rx="8", kind="ground")
        self.root.append(self._definitions)
        y = MARGIN + 12
        self.write(MARGIN, y, fitting(title, 16, WIDTH - 2 * MARGIN), "title")
        for line in facts:
            y += 18
            self.write(MARGIN, y, line, "quiet")
        y += 14
        for draw in rows:
            add(self.root, "line", x1=MARGIN, y1=y, x2=WIDTH - MARGIN, y2=y, kind="rule")
            y = draw(y + 22)
        for line in notes:
            self.write(MARGIN, y, line, "small")
            y += 14
        across, down = f"{WIDTH:g}", f"{y + 6:.0f}"
        self.root.attrib |= {"width": across, "height": down, "viewBox": f"0 0 {across} {down}", "role": "img"}
        ground.set("height", str(int(down) - 1))
        ElementTree.indent(self.root)
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"

    def write(self, x: float, y: float, text: str, kind: str) -> None:
        """Adds a line of text that begins at a place."""
        add(self.root, "text", text, x=x, y=y, kind=kind)

    def group(self, x: float, y: float) -> Element:
        """Adds a group at a place."""
        return add(self.root, "g", transform=f"translate({x:.2f} {y:.2f})")

    def fill(self, devices: Sequence[int], width: float) -> str:
        """Returns the fill of devices: the colour of one, or slanted stripes of `width` pixels for several."""
        if not 1 <= len(devices) <= _MOST_STRIPES:
            return _MANY
        if len(devices) == 1:
            return self._colours[devices[0]]
        name = "-".join(map(str, ("stripes", round(width), *devices)))
        if not any(pattern.get("id") == name for pattern in self._definitions):
            period = width * len(devices)
            pattern = add(self._definitions, "pattern", id=name, width=period, height=period)
            pattern.attrib |= {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
            for number, device in enumerate(devices):
                add(pattern, "rect", x=number * width, width=width, height=period, fill=self._colours[device])
        return f"url(#{name})"


def draw_tensor(canvas: Canvas, group: Element, frame: Frame, layout: TensorLayout) -> None:
    """Draws a tensor into a group: each shard with the devices that hold it, and ticks where the shards begin."""
    if prod(layout.blocks) > MOST_BLOCKS:
        for corner in frame.corners():
            rectangle(group, (*corner, frame.width, frame.height), "frame")
        blocks = " × ".join(map(str, layout.blocks))
        add(group, "text", f"{blocks} blocks", x=frame.total_width / 2, y=frame.total_height / 2, kind="middle")
    else:
        holders: defaultdict[Box, list[int]] = defaultdict(list)
        for device, box in layout.device_boxes().items():
            holders[box].append(device)
        drawn = [(area, devices) for box, devices in holders.items() for area in frame.areas(box)]
        labels = [_holder_lines(area, of, words.between_holders(layout, of)) for area, of in drawn]
        # Labels are useful only if most of the shards have room for one.
        are_labelled = 2 * sum(map(bool, labels)) > len(labels)
        for (area, devices), lines in zip(drawn, labels, strict=True):
            rectangle(group, area, "block", canvas.fill(devices, 7))
            if are_labelled:
                _draw_lines(group, area, lines, has_halo=len(devices) > 1)
    _draw_ticks(group, frame, layout)


def fitting(text: str, size: float, width: float) -> str:
    """Returns the text, with an ellipsis for its end if it is wider than `width` in bold."""
    most = next((most for most in range(len(text), 1, -1) if text_width(text[:most], size, is_bold=True) <= width), 1)
    return words.cut(text, most)


_Area = tuple[float, float, float, float]


def _holder_lines(area: _Area, devices: Sequence[int], between: str) -> list[str]:
    """Returns lines with as many of the numbers of the devices as fit the area; empty if none fit."""
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
    """Draws lines of text in the middle of an area."""
    x, y, width, height = area
    first = y + height / 2 + 4 - 7.5 * (len(lines) - 1)
    for number, line in enumerate(lines):
        for kind in ("middle held halo", "middle held") if has_halo else ("middle held",):
            add(group, "text", line, x=x + width / 2, y=first + 15 * number, kind=kind)


def _draw_ticks(group: Element, frame: Frame, layout: TensorLayout) -> None:
    """Draws ticks where shards begin and the tensor ends: of rows on the left, of columns above each slab."""
    for number, ((x, y), slab) in enumerate(zip(frame.corners(), frame.slabs, strict=True)):
        if len(layout.shape) > 1 and number % frame.per_row == 0:
            _draw_row_ticks(group, frame, layout, x, y)
        if layout.shape:
            _draw_column_ticks(group, frame, layout, x, y, is_first=number % frame.per_row == 0)
        room = frame.width + (frame.gap if frame.per_row > 1 else 0)
        title = next((title for title in _slab_titles(slab) if text_width(title, 10) < room), "")
        if title:
            add(group, "text", title, x=x + frame.width / 2, y=y + frame.height + 12, kind="small middle")


def _draw_row_ticks(group: Element, frame: Frame, layout: TensorLayout, x: float, y: float) -> None:
    size = layout.shape[-2]
    for row in _ticks(size, layout.blocks[-2], frame.height / 11):
        below = row * frame.height / max(size, 1)
        add(group, "text", _number(row), x=x - 5, y=y + below + 3.5, kind="small end")


def _draw_column_ticks(
    group: Element, frame: Frame, layout: TensorLayout, x: float, y: float, *, is_first: bool
) -> None:
    size = layout.shape[-1]
    last = text_width(_number(size), 10)
    ticks = _ticks(size, layout.blocks[-1], frame.width / (last + 6))
    # Half of the zero is to the left of the slab, and half of the size of the slab before is to the right of that slab.
    half_zero = text_width("0", 10) / 2
    if half_zero + last / 2 + 2 > frame.width or not (is_first or half_zero + last / 2 + 2 < frame.gap):
        ticks = ticks[1:]
    for column in ticks if last < frame.width + frame.gap else ():
        across = column * frame.width / max(size, 1)
        add(group, "text", _number(column), x=x + across, y=y - 5, kind="small middle")


def _slab_titles(slab: Slab) -> Iterator[str]:
    """Yields texts with the indices of a slab, the longest first."""
    if slab:
        intervals = [words.interval(begin, end - begin) for begin, end in slab]
        yield f"[{', '.join([*intervals, ':', ':'])}]"
        yield ", ".join(intervals)
        yield ", ".join(_number(begin) for begin, _ in slab)


def _number(value: int) -> str:
    """Returns an index as a text that fits the space on the left of the tensor."""
    return str(value) if value < 10**7 else f"{value:.1e}".replace("e+", "e")


def _ticks(size: int, blocks: int, most: float) -> tuple[int, ...]:
    """Returns the starts of the shards and the end of the last one; only 0 and the end if these are too many."""
    at = (*dim_cuts(size, blocks), size)
    return at if len(at) <= min(most, _MOST_TICKS) else (0, size)
