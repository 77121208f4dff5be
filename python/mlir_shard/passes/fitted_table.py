# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of reports on terminals of any width: a table that is too wide becomes a paragraph for each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO

from rich import box as borders
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Cell = str | Text
_INDENT = 2
_ANY_WIDTH = 100_000


@dataclass(frozen=True)
class FittedTable:
    """Rows below headings.

    right: the columns, by number, that are aligned to the right; footer: a last row, about all other rows; has_line:
    whether there is a line below the headings.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: Sequence[int] = ()
    footer: Sequence[Cell] = ()
    has_line: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = self._table()
        if natural_width(table, console, options) <= options.max_width:
            yield table
        else:
            for row in self.rows:
                yield from _paragraph(self.headings, row, options.max_width)
            if self.footer:
                yield from _paragraph(["", *self.headings[1:]], self.footer, options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._table())

    def _repr_html_(self) -> str:
        """Returns the table as HTML for notebooks; lines of cells are not broken, whatever the width."""
        rows = [self._html_row("td", row) for row in self.rows]
        foot = f"<tfoot>{self._html_row('th', self.footer)}</tfoot>" if self.footer else ""
        head, body = self._html_row("th", self.headings), "".join(rows)
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody>{foot}</table>"
        return f'<div style="overflow-x: auto">{table}</div>'

    def _html_row(self, tag: str, cells: Sequence[Cell]) -> str:
        sides = ["right" if number in self.right else "left" for number in range(len(cells))]
        row = [
            f'<{tag} style="text-align: {side}; white-space: nowrap">{escape(_text(cell).plain)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        ]
        return f"<tr>{''.join(row)}</tr>"

    def _table(self) -> Table:
        if self.has_line:
            table = Table(box=borders.SIMPLE_HEAD, pad_edge=False, show_footer=bool(self.footer))
        else:
            table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        footer = self.footer or [""] * len(self.headings)
        for number, (heading, last) in enumerate(zip(self.headings, footer, strict=True)):
            table.add_column(Text(heading), _text(last), justify="right" if number in self.right else "left")
        for row in self.rows:
            table.add_row(*map(_text, row))
        return table


def _paragraph(headings: Sequence[str], row: Sequence[Cell], width: int) -> Iterator[RenderableType]:
    """Yields the first cell, then lines of the other cells with their headings, as many in a line as fit."""
    # Spaces that align parts of a heading with parts of its cells have no use in a paragraph.
    named = [(" ".join(heading.split()), _text(cell)) for heading, cell in zip(headings, row, strict=True) if len(cell)]
    first, *parts = (Text.assemble((f"{heading} " if heading else "", "dim"), cell) for heading, cell in named)
    yield first
    line = Text()
    for part in parts:
        if line.cell_len and _INDENT + line.cell_len + 2 + part.cell_len > width:
            yield _indented(line)
            line = Text()
        line = Text.assemble(line, "; ", part) if line.cell_len else part
    if line.cell_len:
        yield _indented(line)


def _indented(line: Text) -> RenderableType:
    return Padding(line, (0, 0, 0, _INDENT), expand=False)


def _text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def natural_width(renderable: RenderableType, console: Console, options: ConsoleOptions) -> int:
    """Returns the number of columns that a renderable takes without a limit."""
    return Measurement.get(console, options.update(max_width=_ANY_WIDTH), renderable).maximum


@dataclass(frozen=True)
class FirstThatFits:
    """The first of several forms of the same contents that is narrow enough, or the last."""

    forms: Sequence[RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield self._form(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._form(console, options))

    def _form(self, console: Console, options: ConsoleOptions) -> RenderableType:
        widths = ((form, natural_width(form, console, options)) for form in self.forms)
        return next((form for form, width in widths if width <= options.max_width), self.forms[-1])


def as_text(renderable: RenderableType, width: int) -> str:
    """Renders as text without colours, in `width` columns."""
    file = StringIO()
    # In a notebook, a console would display its output instead of writing it.
    Console(file=file, width=width, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().strip("\n").splitlines())
