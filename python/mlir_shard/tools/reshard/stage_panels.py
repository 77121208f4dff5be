# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The two panels of a stage: the tensor with the holders of its blocks, and each device with its box."""

from __future__ import annotations

from collections import defaultdict
from math import prod

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.colours import device_colour
from mlir_shard.tools.reshard.device_grid import DeviceGrid
from mlir_shard.tools.reshard.frame import Area, Frame
from mlir_shard.tools.reshard.origins import Origin, origins
from mlir_shard.tools.reshard.slabs import dim_cuts
from mlir_shard.tools.reshard.svg_canvas import SvgCanvas

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
        self._positions = {device: position for position, device in enumerate(layout.mesh.devices)}

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
                device: (Origin(boxes[device], (device,)),) for device in grid.devices
            }
        else:
            tiles = origins(self._before, self._layout, grid.devices)
        for number, device in enumerate(grid.devices):
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
