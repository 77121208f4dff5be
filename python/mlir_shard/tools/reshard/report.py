# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as text and as an HTML page.

The text shows the tensor before and after, the boxes and the traffic of each device, the steps, and the lower bound.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from rich import box as borders
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mlir_shard.passes.fitted_table import Cell, FirstThatFits, FittedTable
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box, device_coordinates
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.drawing import device_colour, dim_cuts
from mlir_shard.tools.reshard.picture import svg
from mlir_shard.tools.reshard.words import totals

MOST_ROWS = 32
"""The maximum number of devices or boxes in a table; of more, it lists the first ones, the last one and the count."""
MOST_CELLS, _LEAST_CELLS = 8, 3
"""The maximum number of shards of a dimension in the drawing of a tensor, and the least if the text is narrow."""
_ELLIPSIS = "…"


def report(plan: Plan, title: str, notes: Sequence[str] = ()) -> RenderableType:
    """Returns the report of a plan, with a title at the start and `notes` at the end."""
    parts: list[RenderableType] = [Text(title, style="bold"), Text("")]
    parts.append(_tensors(plan))
    parts += [Text(""), _heading("Devices"), _devices(plan), Text("")]
    if plan.steps:
        parts += [_heading("Steps"), _steps(plan), Text("")]
    parts += map(Text, (*totals(plan), *notes))
    return Group(*parts)


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _tensors(plan: Plan) -> RenderableType:
    drawn = [
        Group(_heading(f"{name} {words.placement(layout)}"), _tensor(layout))
        for name, layout in (("Before", plan.source), ("After", plan.target))
    ]
    return Columns(drawn, padding=(0, 4))


def _tensor(layout: TensorLayout) -> RenderableType:
    holders: defaultdict[Box, list[int]] = defaultdict(list)
    for device, box in layout.device_boxes().items():
        holders[box].append(device)
    names = _DeviceNames(layout)
    drawing = _drawing(layout, holders, names) if len(layout.shape) in (1, 2) else _listing(holders, names)
    empty = [device for box, devices in holders.items() if box.is_empty for device in devices]
    if not empty:
        return drawing
    return Group(drawing, Text.assemble("without data: ", names.of(empty)))


class _DeviceNames:
    """Device numbers in the colours of the devices."""

    def __init__(self, layout: TensorLayout, after: TensorLayout | None = None) -> None:
        self._layout = layout
        devices = (*layout.mesh.devices, *(() if after is None else after.mesh.devices))
        self._positions = {device: position for position, device in enumerate(dict.fromkeys(devices))}

    def holding(self, holders: Sequence[int]) -> Text:
        """Returns the numbers of the devices that hold a shard."""
        return self.of(holders, words.between_holders(self._layout, holders))

    def of(self, devices: Sequence[int], between: str = " ", most: int = 8) -> Text:
        """Returns the numbers of devices; if there are more than `most`, the first ones, the last one and the count."""
        result = Text()
        for number, device in enumerate(words.first_and_last(devices, most)):
            result.append(between if number else "")
            if device is None:
                result.append(_ELLIPSIS)
            else:
                result.append(str(device), device_colour(self._positions[device], len(self._positions), is_text=True))
        return result.append(f" ({len(devices)})" if len(devices) > most else "")


def _drawing(layout: TensorLayout, holders: dict[Box, list[int]], names: _DeviceNames) -> RenderableType:
    """Returns a grid of shards with as many columns as fit, or a list of the boxes if no grid fits."""
    grids = [_grid(layout, holders, names, columns) for columns in range(MOST_CELLS, _LEAST_CELLS - 1, -1)]
    return FirstThatFits([*grids, _listing(holders, names)])


def _grid(layout: TensorLayout, holders: dict[Box, list[int]], names: _DeviceNames, most_columns: int) -> Table:
    """Returns a grid of shards with the indices of rows and columns; the first ones and the last if it is large."""
    rows = _intervals(layout, 0, MOST_CELLS) if layout.rank == 2 else [(0, (0, 1))]
    columns = _intervals(layout, layout.rank - 1, most_columns)
    table = Table(box=borders.SQUARE, show_lines=True, pad_edge=True)
    if layout.rank == 2:
        table.add_column("")
    for column in columns:
        table.add_column(_ELLIPSIS if column is None else words.interval(*column[1]), justify="center")
    for row in rows:
        cells = [
            Text(_ELLIPSIS)
            if row is None or column is None
            else names.holding(holders[layout.box((row[0], column[0])[2 - layout.rank :])])
            for column in columns
        ]
        heading = [] if layout.rank == 1 else [Text(_ELLIPSIS if row is None else words.interval(*row[1]))]
        table.add_row(*heading, *cells)
    return table


def _intervals(layout: TensorLayout, dim: int, most: int) -> list[tuple[int, tuple[int, int]] | None]:
    """Returns the numbers, starts and sizes of a dimension's nonempty shards; None stands for omitted ones."""
    size = layout.shape[dim]
    cuts = dim_cuts(size, layout.blocks[dim])
    intervals = [(number, (cut, min(cuts.step, size - cut))) for number, cut in enumerate(cuts)]
    return words.first_and_last(intervals, most)


def _listing(holders: dict[Box, list[int]], names: _DeviceNames) -> FittedTable:
    """Returns a table of the boxes with the devices that hold them."""
    boxes = sorted((box for box in holders if not box.is_empty), key=lambda box: box.start)
    rows: list[tuple[Cell, ...]] = [
        (_ELLIPSIS, f"{len(boxes)} boxes") if box is None else (words.box_text(box), names.holding(holders[box]))
        for box in words.first_and_last(boxes, MOST_ROWS)
    ]
    return FittedTable(("box", "devices"), rows)


def _devices(plan: Plan) -> FittedTable:
    """Returns a table of the devices: coordinates, boxes, bytes sent and received, and lower bounds."""
    names = _DeviceNames(plan.source, plan.target)
    mesh = plan.target.mesh
    widths = [max(len(axis.name), len(str(axis.size - 1))) for axis in mesh.axes]
    axes = " ".join(map(str.ljust, mesh.axis_names, widths)).rstrip()
    headings = ("device", axes, "box before", "box after", "sends", "receives", "bound")
    rows: list[tuple[Cell, ...]] = []
    sent, received = (_by_device(plan, which) for which in ("bytes_sent", "bytes_received"))
    bound = dict(zip(mesh.devices, plan.bound.per_device, strict=True))
    before, after = plan.source.device_boxes(), plan.target.device_boxes()
    devices = plan.target.mesh.devices_with(plan.source.mesh)
    for device in words.first_and_last(devices, MOST_ROWS):
        if device is None:
            rows.append((_ELLIPSIS, "", f"{len(devices)} devices", *[""] * 4))
            continue
        # If the meshes have different devices, a device that is in one of them has no coordinates or box in the other.
        coordinates = device_coordinates(mesh, device) if device in after else ()
        place = " ".join(text.ljust(width) for text, width in zip(map(str, coordinates), widths, strict=False))
        boxes = (words.box_text(of[device]) if device in of else "not there" for of in (before, after))
        moved = (words.amount(of_device.get(device, 0)) for of_device in (sent, received, bound))
        rows.append((names.of([device]), place.rstrip(), *boxes, *moved))
    return FittedTable(headings, rows, right=(4, 5, 6))


def _by_device(plan: Plan, which: str) -> dict[int, int]:
    total = dict.fromkeys(plan.target.mesh.devices_with(plan.source.mesh), 0)
    for step in plan.steps:
        for device, size in zip(step.devices, getattr(step, which), strict=True):
            total[device] += size
    return total


def _steps(plan: Plan) -> FittedTable:
    """Returns a table of the steps: the sharding after each, the bytes received, sent and held, and the time."""
    rows = [
        (
            str(number),
            words.move(step),
            words.placement(step.after),
            words.amounts(step.bytes_received),
            words.amounts(step.bytes_sent),
            words.amount(step.total_bytes),
            words.amount(step.memory),
            words.duration(step.time),
        )
        for number, step in enumerate(plan.steps, 1)
    ]
    headings = ("", "move", "sharding after", "receives", "sends", "all receive", "holds", "time")
    return FittedTable(headings, rows, right=(3, 4, 5, 6, 7))


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ margin: 24px auto; max-width: 1200px; padding: 0 16px; background: #f6f8fa; color: #1f2328 }}
svg {{ max-width: 100%; height: auto }}
pre {{ background: #ffffff; border: 1px solid #d0d7de; border-radius: 8px; padding: 16px; overflow-x: auto;
  font: 13px/1.35 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }}
</style>
</head>
<body>
{picture}{text}
</body>
</html>
"""


def text(plan: Plan, title: str, notes: Sequence[str], width: int, *, in_colour: bool) -> str:
    """Returns the report as text of `width` columns, with the colour codes of terminals if `in_colour` is set."""
    console = _console(width, in_colour=in_colour)
    with console.capture() as captured:
        console.print(report(plan, title, notes))
    return re.sub(r"[ ]+$", "", captured.get(), flags=re.MULTILINE)


def html(plan: Plan, title: str, notes: Sequence[str], width: int) -> str:
    """Returns an HTML page with the picture and the report."""
    console = _console(width, in_colour=True)
    console.print(report(plan, title, notes))
    told = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    return _PAGE.format(title=escape(title), picture=svg(plan, title), text=told)


def _console(width: int, *, in_colour: bool) -> Console:
    # The environment has no effect: equal plans give equal texts.
    return Console(
        file=io.StringIO(),
        record=in_colour,
        width=width,
        height=100,
        color_system="truecolor" if in_colour else None,
        force_terminal=in_colour,
        force_jupyter=False,
        no_color=not in_colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
