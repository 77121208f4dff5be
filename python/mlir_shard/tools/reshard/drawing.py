# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Geometry of pictures: colours of devices, slabs of tensors in frames, grids of devices, origins of tiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from mlir_shard.resharding.cost.lower_bound import segments_by_target
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.sharding import Mesh, MeshAxis
from mlir_shard.sharding.layout import Box, block_size, device_coordinates
from mlir_shard.tools.reshard import words

_FEW = 12
_LIGHTNESS = (0.78, 0.66, 0.86, 0.58)
_TEXT_LIGHTNESS = 0.5
_SATURATION = 0.55


def device_colour(position: int, count: int, *, is_text: bool = False) -> str:
    """Returns the colour, as `#rrggbb`, of the device at a position of `count` devices; darker if it is for text."""
    lightness = _TEXT_LIGHTNESS if is_text else _LIGHTNESS[0 if count <= _FEW else position % len(_LIGHTNESS)]
    return "#" + "".join(f"{round(255 * one):02x}" for one in hls_to_rgb(position / count, lightness, _SATURATION))


_NARROW, _WIDE = frozenset("fijlrt.,:;'|()[]{}"), frozenset("mwMW@%…")
_BOLD = 1.1


def text_width(text: str, size: float, *, is_bold: bool = False) -> float:
    """Returns the width of a text in pixels, or a bit more, in the widest font of pictures, DejaVu Sans."""
    return size * sum(map(_em, text)) * (_BOLD if is_bold else 1)


def _em(character: str) -> float:
    """Returns the width of a character relative to the size of the font."""
    if character == " ":
        return 0.32
    if character in _NARROW:
        return 0.42
    if character in _WIDE:
        return 1.0
    return 0.64 if character.isdecimal() or character.islower() else 0.84


def dim_cuts(size: int, blocks: int) -> range:
    """Returns the starts of the shards of a dimension that are not empty."""
    return range(0, size, max(block_size(size, blocks), 1))


Slab = tuple[tuple[int, int], ...]
"""The start and stop in every dimension but the last two."""

MOST_SLABS = 12
"""The maximum number of drawn slabs; the others are counted."""
_LEAST_SIDE = 3.0
_LEAST_RATIO = 0.5
_MOST_RATIO = 2.5


def slabs_of(layouts: Iterable[TensorLayout]) -> tuple[Slab, ...]:
    """Returns the slabs of a tensor, divided wherever a box of one of these layouts begins or ends."""
    layouts = tuple(layouts)
    parts = []
    for dim, size in enumerate(layouts[0].shape[:-2]):
        at = {0, size}.union(*(dim_cuts(size, layout.blocks[dim]) for layout in layouts))
        parts.append(tuple(pairwise(sorted(at))) or ((0, 0),))
    return tuple(product(*parts))


@dataclass(frozen=True, slots=True)
class Frame:
    """The first slabs of a tensor in rows of `per_row`, each of `width` by `height` pixels, with gaps between them."""

    shape: tuple[int, ...]
    slabs: tuple[Slab, ...]
    per_row: int
    width: float
    height: float
    gap: float
    row_gap: float

    @staticmethod
    def within(
        shape: tuple[int, ...], slabs: tuple[Slab, ...], width: float, height: float, gap: float, row_gap: float
    ) -> Frame:
        """Returns the frame of at most this width and height with the largest slabs."""
        drawn, frames = slabs[:MOST_SLABS], []
        for per_row in range(1, len(drawn) + 1):
            rows = -(-len(drawn) // per_row)
            across, down = (width - gap * (per_row - 1)) / per_row, (height - row_gap * (rows - 1)) / rows
            frames.append(Frame(shape, drawn, per_row, *_fitted(shape, across, down), gap, row_gap))
        return max(frames, key=lambda frame: frame.width * frame.height)

    @property
    def total_width(self) -> float:
        """The width of all slabs."""
        return self.per_row * (self.width + self.gap) - self.gap

    @property
    def total_height(self) -> float:
        """The height of all slabs."""
        return -(-len(self.slabs) // self.per_row) * (self.height + self.row_gap) - self.row_gap

    def corners(self) -> list[tuple[float, float]]:
        """Returns the top left corner of each slab."""
        places = (divmod(number, self.per_row) for number in range(len(self.slabs)))
        return [(column * (self.width + self.gap), row * (self.height + self.row_gap)) for row, column in places]

    def areas(self, box: Box) -> Iterator[tuple[float, float, float, float]]:
        """Yields the part of a box on each slab that contains one: x, y, and a visible width and height."""
        if box.is_empty:
            return
        scales = [
            side / max(size, 1) for side, size in zip((self.height, self.width), (1, 1, *self.shape)[-2:], strict=True)
        ]
        top, left = (at * scale for at, scale in zip((0, 0, *box.start)[-2:], scales, strict=True))
        sides = (max(size * scale, _LEAST_SIDE) for size, scale in zip((1, 1, *box.size)[-2:], scales, strict=True))
        height, width = sides
        leading = tuple(zip(box.start, box.stop, strict=True))[:-2]
        for (x, y), slab in zip(self.corners(), self.slabs, strict=True):
            if all(start <= begin and end <= stop for (start, stop), (begin, end) in zip(leading, slab, strict=True)):
                yield x + min(left, self.width - width), y + min(top, self.height - height), width, height


def _fitted(shape: tuple[int, ...], width: float, height: float) -> tuple[float, float]:
    """Returns the size of the largest slab within this width and height."""
    width, height = max(width, _LEAST_SIDE), max(height, _LEAST_SIDE)
    if len(shape) < 2:
        return width, min(height, max(width / 6, 16))
    ratio = min(max(max(shape[-1], 1) / max(shape[-2], 1), _LEAST_RATIO), _MOST_RATIO)
    width = min(width, height * ratio)
    return width, width / ratio


MOST_DEVICES = 64
"""The maximum number of drawn devices; the others are counted."""
_MOST_COLUMNS = 16
_MOST_ROWS = 8
_WRAPPED_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class DeviceGrid:
    """Devices in rows of `columns`. Headings are coordinates along mesh axes, or empty."""

    devices: tuple[int, ...]
    columns: int
    row_headings: tuple[str, ...]
    column_headings: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return -(-len(self.devices) // self.columns)


def device_grids(mesh: Mesh, before: Mesh) -> tuple[DeviceGrid, ...]:
    """Returns the grids of at most `MOST_DEVICES` devices that can be drawn; the grids nearest to a square first.

    If the mesh `before` has other devices, the only grid contains the devices of both meshes.
    """
    grids = []
    if mesh.has_same_devices(before):
        for number in range(len(mesh.axes) + 1):
            rows, columns = (prod(axis.size for axis in axes) for axes in (mesh.axes[:number], mesh.axes[number:]))
            if columns <= _MOST_COLUMNS and rows <= _MOST_ROWS:
                grids.append(_grid(mesh, number, min(rows, max(MOST_DEVICES // columns, 1)), columns))
    if not grids:
        shown = tuple(sorted(mesh.devices_with(before)))[:MOST_DEVICES]
        rows = -(-len(shown) // _WRAPPED_COLUMNS)
        grids.append(DeviceGrid(shown, _WRAPPED_COLUMNS, ("",) * rows, ("",) * _WRAPPED_COLUMNS))
    return tuple(sorted(grids, key=lambda grid: abs(grid.columns - grid.rows)))


def _grid(mesh: Mesh, number: int, rows: int, columns: int) -> DeviceGrid:
    """Returns a grid whose rows are along the first `number` axes and whose columns are along the others."""
    shown = mesh.devices[: rows * columns]
    coordinates = [device_coordinates(mesh, device) for device in shown]
    return DeviceGrid(
        shown,
        columns,
        tuple(_heading(mesh.axes[:number], coordinates[row * columns][:number]) for row in range(rows)),
        tuple(_heading(mesh.axes[number:], coordinates[column][number:]) for column in range(columns)),
    )


_MOST_LETTERS = 24


def _heading(axes: Sequence[MeshAxis], coordinates: Sequence[int]) -> str:
    most = max(_MOST_LETTERS // max(len(axes), 1), 2)
    names = (words.cut(axis.name, most) for axis in axes)
    return " ".join(f"{name}={index}" for name, index in zip(names, coordinates, strict=True))


MOST_TILES = 256
"""The maximum number of tiles of a device's box that are drawn separately."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A box of the tensor and the devices that send it, several if their values are reduced."""

    box: Box
    senders: tuple[int, ...]


def origins(source: TensorLayout, target: TensorLayout, receivers: Collection[int]) -> dict[int, tuple[Origin, ...]]:
    """Returns for each receiver the tiles of its box, each with the nearest device that held it: itself, if possible.

    Devices whose boxes have more than `MOST_TILES` tiles are left out. Raises ValueError if the source layout cannot be
    resharded to the target layout.
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
