# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pieces of pictures: an SVG canvas, colours of devices, slabs of tensors, a grid of devices, origins of data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from math import cos, prod, radians, sin
from xml.etree import ElementTree

from mlir_shard.resharding.cost.lower_bound import segments_by_target
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import Mesh, MeshAxis
from mlir_shard.sharding.layout import Box, block_size, device_coordinates

_NAMESPACE = "http://www.w3.org/2000/svg"


class SvgCanvas:
    """Draws from the top left corner; lengths are in pixels. The same calls make the same text."""

    def __init__(self) -> None:
        self._root = ElementTree.Element("svg", {"xmlns": _NAMESPACE})
        self._definitions = ElementTree.SubElement(self._root, "defs")
        self._patterns: dict[tuple[str, ...], str] = {}

    def rectangle(self, x: float, y: float, width: float, height: float, *, kind: str = "", fill: str = "") -> None:
        """A rectangle of a class, a colour, or both."""
        attributes = {"x": _number(x), "y": _number(y), "width": _number(width), "height": _number(height)}
        ElementTree.SubElement(self._root, "rect", attributes | _look(kind, fill))

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        """A line of a class."""
        attributes = {"x1": _number(x), "y1": _number(y), "x2": _number(to_x), "y2": _number(to_y), "class": kind}
        ElementTree.SubElement(self._root, "line", attributes)

    def text(self, x: float, y: float, content: str, kind: str = "") -> None:
        """Text on a base line; a class says where `x` is of it."""
        element = ElementTree.SubElement(self._root, "text", {"x": _number(x), "y": _number(y)} | _look(kind, ""))
        element.text = _printable(content)

    def stripes(self, colours: tuple[str, ...], width: float) -> str:
        """A fill of slanting stripes, each so wide."""
        name = self._patterns.get(colours)
        if name is None:
            name = self._patterns[colours] = f"stripes-{len(self._patterns)}"
            period = _number(width * len(colours))
            attributes = {"id": name, "width": period, "height": period, "patternUnits": "userSpaceOnUse"}
            attributes["patternTransform"] = "rotate(45)"
            pattern = ElementTree.SubElement(self._definitions, "pattern", attributes)
            for number, colour in enumerate(colours):
                stripe = {"x": _number(number * width), "width": _number(width), "height": period, "fill": colour}
                ElementTree.SubElement(pattern, "rect", stripe)
        return f"url(#{name})"

    def picture(self, width: float, height: float, title: str, style: str) -> str:
        """The SVG file, on a ground of the class `ground`, with a title for those who cannot see it."""
        root = ElementTree.Element("svg", dict(self._root.attrib))
        root.attrib |= {"width": _number(width), "height": _number(height), "role": "img"}
        root.set("viewBox", f"0 0 {_number(width)} {_number(height)}")
        ElementTree.SubElement(root, "title").text = _printable(title)
        ElementTree.SubElement(root, "style").text = style
        ground = {"x": "0.5", "y": "0.5", "rx": "8", "class": "ground"}
        ground |= {"width": _number(width - 1), "height": _number(height - 1)}
        ElementTree.SubElement(root, "rect", ground)
        root.extend(child for child in self._root if child is not self._definitions or len(child))
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode") + "\n"


def _look(kind: str, fill: str) -> dict[str, str]:
    return {name: value for name, value in (("class", kind), ("fill", fill)) if value}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """The text without control characters, which XML has no way to say."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


_CHROMA = 0.115
_FEW = 12
_LIGHTNESS = (0.82, 0.72, 0.88, 0.65)
_DARKER = 0.17


@cache
def device_colour(position: int, count: int, *, is_text: bool = False) -> str:
    """The colour, as `#rrggbb`, of the device at a position of a mesh of `count` devices.

    That of text is a darker one, which can be read on a light ground and on a dark one.
    """
    hue = 20 + 360 * position / max(count, 1)
    lightness = _LIGHTNESS[0 if count <= _FEW else position % len(_LIGHTNESS)]
    return _rgb(lightness - _DARKER * is_text, _CHROMA, hue)


def _rgb(lightness: float, chroma: float, hue: float) -> str:
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(max(one, 0.0), 1.0))):02x}" for one in linear)


def _gamma(linear: float) -> float:
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Rows and columns of a slab, in elements; `slab` is its number."""

    slab: int
    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Slabs:
    """A tensor of `shape`; `slabs` has of each slab the part of every dimension but the last two, start and stop."""

    shape: tuple[int, ...]
    slabs: tuple[tuple[tuple[int, int], ...], ...]

    @staticmethod
    def of(layouts: Iterable[TensorLayout]) -> Slabs:
        """Slabs that no box of the layouts, which are of one tensor, is a part of."""
        layouts = tuple(layouts)
        shape = layouts[0].shape
        parts = []
        for dim, size in enumerate(shape[:-2]):
            at = {0, size}.union(*(dim_cuts(size, layout.blocks[dim]) for layout in layouts))
            parts.append(tuple(pairwise(sorted(at))) or ((0, 0),))
        return Slabs(shape, tuple(product(*parts)))

    @property
    def rows(self) -> int:
        """The rows of a slab."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def columns(self) -> int:
        """The columns of a slab."""
        return self.shape[-1] if self.shape else 1

    def rectangles(self, box: Box) -> Iterator[Rectangle]:
        """What a box is on the slabs: one rectangle on each of some of them, none where it is empty."""
        if box.is_empty:
            return
        start, size = (0, 0, *box.start)[-2:], (1, 1, *box.size)[-2:]
        leading = tuple(zip(box.start, box.stop, strict=True))[:-2]
        for number, slab in enumerate(self.slabs):
            if all(begin <= first and last <= end for (begin, end), (first, last) in zip(leading, slab, strict=True)):
                yield Rectangle(number, *start, *size)


def dim_cuts(size: int, blocks: int) -> range:
    """Where a dimension is cut in blocks: the start of every block that is not empty."""
    return range(0, size, max(block_size(size, blocks), 1))


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


def device_grids(mesh: Mesh, before: Mesh | None = None) -> tuple[DeviceGrid, ...]:
    """The grids that can be drawn, of at most `MOST_DEVICES` devices; those nearest to a square first.

    Where the mesh before is of other devices, they are of the devices of both.
    """
    if before is not None and not mesh.has_same_devices(before):
        return (_wrapped(sorted(mesh.devices_with(before))),)
    grids = [
        _grid(mesh, number)
        for number in range(len(mesh.axes) + 1)
        if _size(mesh.axes[number:]) <= _MOST_COLUMNS and _size(mesh.axes[:number]) <= _MOST_ROWS
    ]
    return tuple(sorted(grids, key=lambda grid: abs(grid.columns - grid.rows))) or (_wrapped(mesh.devices),)


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


def _wrapped(devices: Sequence[int]) -> DeviceGrid:
    """Rows that end where there is no place for more."""
    shown = tuple(devices[:MOST_DEVICES])
    rows = -(-len(shown) // _WRAPPED_COLUMNS)
    return DeviceGrid(shown, _WRAPPED_COLUMNS, ("",) * rows, ("",) * _WRAPPED_COLUMNS)


def _size(axes: Sequence[MeshAxis]) -> int:
    return prod(axis.size for axis in axes)


def _heading(axes: Sequence[MeshAxis], place: Sequence[int]) -> str:
    return " ".join(f"{axis.name}={index}" for axis, index in zip(axes, place, strict=True))


MOST_TILES = 256
"""Of how many tiles a device's box may be for them to be told apart."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A box of the tensor and the devices that it is from, more than one where their values are reduced."""

    box: Box
    senders: tuple[int, ...]


def origins(source: TensorLayout, target: TensorLayout, receivers: Collection[int]) -> dict[int, tuple[Origin, ...]]:
    """For each receiver the tiles of its box, each from the nearest device that held it before: itself, if it did.

    Nothing of a device whose box is of more than `MOST_TILES` tiles. ValueError where there is no way from one layout
    to the other.
    """
    if not source.mesh.has_same_devices(target.mesh):
        found: defaultdict[int, list[Origin]] = defaultdict(list)
        phase = direct_exchange(source, target).moving
        for message in (*phase.copies, *phase.messages):
            found[message.receiver] += [Origin(tile.box, (message.sender,)) for tile in message.tiles]
        return {device: tuple(found[device]) for device in receivers if len(found[device]) <= MOST_TILES}
    held = source.holdings(reduced_axes(source, target))
    positions = {device: position for position, device in enumerate(source.mesh.devices)}
    dims = [segments_by_target(*grids) for grids in zip(source.shape, source.blocks, target.blocks, strict=True)]

    def tiles(device: int, wanted: tuple[int, ...]) -> Iterator[Origin]:
        for tile in product(*(dim[block] for dim, block in zip(dims, wanted, strict=True))):
            blocks = tuple(segment.source_block for segment in tile)
            senders = (held.nearest(positions[device], blocks, partial) for partial in range(held.num_partials))
            box = Box(tuple(segment.start for segment in tile), tuple(segment.size for segment in tile))
            yield Origin(box, tuple(source.mesh.devices[sender] for sender in senders))

    return {
        device: tuple(tiles(device, wanted))
        for device, wanted in zip(target.mesh.devices, target.holdings().blocks, strict=True)
        if device in receivers and prod(len(dim[block]) for dim, block in zip(dims, wanted, strict=True)) <= MOST_TILES
    }
