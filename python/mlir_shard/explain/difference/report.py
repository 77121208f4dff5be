# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The difference of two programs as tables for a terminal, and as Markdown for the summary of a job on GitHub."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO

from rich import box as borders
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mlir_shard.explain.difference.changes import (
    CollectiveChange,
    Cost,
    Difference,
    OperationChange,
    ShardingChange,
)
from mlir_shard.explain.quantities import TIME, amount_text, size_text

_MOST_SHOWN = 20
_MOST_LISTED = 200
_WIDTH = 120
_NONE = "none"


def as_text(difference: Difference, names: tuple[str, str] = ("before", "after"), width: int = _WIDTH) -> str:
    """Returns a difference as text without colours, at most `width` columns wide."""
    file = StringIO()
    Console(file=file, width=width, force_jupyter=False).print(as_tables(difference, names))
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").splitlines())


def as_tables(difference: Difference, names: tuple[str, str] = ("before", "after")) -> RenderableType:
    """Returns a difference as tables: the costs of the programs, and each kind of change."""
    if not difference:
        return Text("no difference")
    parts: list[RenderableType] = [Text(_arrow(*names), overflow="fold"), _quantities(difference)]
    if any(difference.meshes):
        parts.append(_listed("meshes", [("", _arrow(*map(_meshes, difference.meshes)))]))
    for title, changes, missing in _shardings(difference):
        if changes:
            rows = [(f"{one.count:,}", _sharding_lines(one, missing)) for one in changes]
            parts.append(_listed(_changed(sum(one.count for one in changes), title), rows))
    if difference.operations:
        rows = [(f"{one.count:,}", _operation_line(one)) for one in difference.operations]
        parts.append(_listed(_changed(sum(one.count for one in difference.operations), "operation"), rows))
    if difference.collectives:
        rows = [(_counts(one), _collective_lines(one)) for one in difference.collectives]
        parts.append(_listed("collectives, and what a device receives", rows))
    return Group(*parts)


def _table(title: str = "") -> Table:
    return Table(box=borders.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", title_style="bold")


def _quantities(difference: Difference) -> Table:
    table = _table()
    table.add_column("")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, before in difference.before.items():
        after = difference.after[name]
        table.add_row(name, amount_text(name, before), amount_text(name, after), growth(name, before, after))
    return table


def growth(name: str, before: float, after: float) -> str:
    """Returns the growth of a quantity, absolute and relative, as text; empty if it is unchanged."""
    if before == after:
        return ""
    share = f" ({(after - before) / before:+.1%})" if before else ""
    sign = "+" if after > before else ""
    return f"{sign}{amount_text(name, after - before)}{share}"


def _listed(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = _table(title)
    table.show_header = False
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for number, text in rows[:_MOST_SHOWN]:
        table.add_row(number, Text(text))
    if len(rows) > _MOST_SHOWN:
        table.add_row("", f"and {len(rows) - _MOST_SHOWN} more kinds of changes: --format=json has all")
    return table


def _counts(one: CollectiveChange) -> str:
    counts = [f"{cost.count:,}" for cost in (one.before, one.after)]
    return _arrow(*counts) if counts[0] != counts[1] else counts[0]


def _received(cost: Cost) -> str:
    return size_text(cost.bytes_received) if cost.count else "0 B"


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}"


def _meshes(meshes: Sequence[str]) -> str:
    return " ".join(meshes) or _NONE


def _shardings(difference: Difference) -> tuple[tuple[str, tuple[ShardingChange, ...], str], ...]:
    """Returns the changes of annotations and of shardings, each with its noun and the text for a missing sharding."""
    return ("annotation", difference.annotations, _NONE), ("sharding", difference.shardings, "replicated")


def _sharding_lines(one: ShardingChange, missing: str) -> str:
    title = " ".join(filter(None, (one.what, one.name, one.type)))
    lines = [title, _arrow(one.before or missing, one.after or missing)]
    return "\n".join([*lines, *(f"at {place}" for place in _places(one.places))])


def _collective_lines(one: CollectiveChange) -> str:
    along = f" along {one.axes}" if one.axes else ""
    lines = [f"{one.kind}{along} for {one.op}", _arrow(*map(_received, (one.before, one.after)))]
    return "\n".join([*lines, *(f"at {place}" for place in _places(one.places))])


def _operation_line(one: OperationChange) -> str:
    return f"{one.change} {one.op}" + (f"\nat {one.place}" if one.place else "")


def _places(places: tuple[str, str]) -> tuple[str, ...]:
    """Returns the last known place: that in the program after if it is known, else that before."""
    return tuple(filter(None, (places[1] or places[0],)))


def as_markdown(
    difference: Difference,
    names: tuple[str, str] = ("before", "after"),
    exceeded: Mapping[str, str] | None = None,
) -> str:
    """Returns a difference in GitHub's Markdown; `exceeded` has a text for each threshold that is exceeded."""
    return "\n".join([*_markdown(difference, names, exceeded or {}), ""])


def _markdown(difference: Difference, names: tuple[str, str], exceeded: Mapping[str, str]) -> Iterator[str]:
    yield f"### Sharding: {_code(names[0])} → {_code(names[1])}"
    yield ""
    for text in exceeded.values():
        yield f"- :x: {_plain(text)}"
    if exceeded:
        yield ""
    if not difference:
        yield "No difference."
        return
    yield from _markdown_table(
        ("", "before", "after", "change"),
        (
            (
                name,
                amount_text(name, before),
                amount_text(name, difference.after[name]),
                growth(name, before, difference.after[name]),
            )
            for name, before in difference.before.items()
        ),
        ("", "r", "r", "r"),
    )
    if any(difference.meshes):
        yield ""
        yield f"Meshes: {_arrow(*(' '.join(map(_code, meshes)) or _NONE for meshes in difference.meshes))}"
    for title, changes, missing in _shardings(difference):
        heading = _changed(sum(one.count for one in changes), title)
        yield from _details(heading, _SHARDING_HEADINGS, [_sharding_row(one, missing) for one in changes])
    title = _changed(sum(one.count for one in difference.operations), "operation")
    yield from _details(title, _OPERATION_HEADINGS, map(_operation_row, difference.operations))
    title = _changed(len(difference.collectives), "kind", "of collectives")
    yield from _details(title, _COLLECTIVE_HEADINGS, map(_collective_row, difference.collectives))


_SHARDING_HEADINGS = ("count", "tensor", "type", "before", "after", "at")
_OPERATION_HEADINGS = ("count", "", "operation", "at")
_COLLECTIVE_HEADINGS = ("collective", "axes", "for", "count", "a device receives", "time", "at")


def _sharding_row(one: ShardingChange, missing: str) -> tuple[str, ...]:
    tensor = f"{one.what} {_code(one.name)}".strip()
    sides = (_code(side) if side else missing for side in (one.before, one.after))
    return f"{one.count:,}", tensor, _code(one.type), *sides, _at(one.places)


def _operation_row(one: OperationChange) -> tuple[str, ...]:
    return f"{one.count:,}", one.change, _code(one.op), _code(one.place)


def _collective_row(one: CollectiveChange) -> tuple[str, ...]:
    received = _arrow(*map(_received, (one.before, one.after)))
    times = _arrow(*(amount_text(TIME, cost.time) for cost in (one.before, one.after)))
    return (*map(_code, (one.kind, one.axes, one.op)), _counts(one), received, times, _at(one.places))


def _changed(count: int, noun: str, rest: str = "") -> str:
    return " ".join(filter(None, (f"{count:,} {noun}{'' if count == 1 else 's'}", rest, "changed")))


def _at(places: tuple[str, str]) -> str:
    return " ".join(map(_code, _places(places)))


def _details(title: str, headings: Sequence[str], of_rows: Iterable[Sequence[str]]) -> Iterator[str]:
    rows = list(of_rows)
    if not rows:
        return
    yield ""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from _markdown_table(headings, rows[:_MOST_LISTED], [""] * len(headings))
    if len(rows) > _MOST_LISTED:
        yield ""
        yield f"And {len(rows) - _MOST_LISTED} more kinds of changes."
    yield ""
    yield "</details>"


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]], alignments: Sequence[str]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"| {' | '.join('---:' if one else '---' for one in alignments)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _plain(text: str) -> str:
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def _code(text: str) -> str:
    """Returns a text as code for a table; empty for an empty text."""
    escaped = " ".join(text.replace("`", "'").split()).replace("|", "\\|")
    return f"`{escaped}`" if escaped else ""
