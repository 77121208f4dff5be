# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the pages of the gallery show of programs: pictures, collectives and local programs, made from the sources.

    python docs/site/programs.py docs/gallery FOLDER

reads the pages of a folder, which name sources in the directive `gallery-program`: a `.mlir` file, or a `.py` file that
makes a `program`. For each it writes a file of JSON and its pictures into another folder. The build of the site runs
this once, in a process of its own, as it replaces torch by another module for the reference.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import mlir_shard
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.values import Tensor
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.tools import program_picture
from mlir_shard.tools.reshard import picture
from mlir_shard.transforms.communication.communication_report import ReportedCollective, axes_text, duration


@dataclass(frozen=True)
class Shown:
    """A program of the gallery.

    Attributes:
        language: of the source, as Pygments names it.
        mesh: its axes and sizes.
        picture: the SVG of its tensors; plans: those of reshards, see `Page`.
        collectives: a row for each, its kind, axes, bytes of a device and of all, time and op, and a row for all.
        summary: the collectives in a line.
        local: the text of the local program.
    """

    source: str
    language: str
    mesh: str
    picture: str
    plans: tuple[str, ...]
    collectives: tuple[tuple[str, ...], ...]
    summary: str
    local: str


@dataclass(frozen=True)
class Page:
    """What a page wants of a program.

    Attributes:
        name: of the page, without a suffix.
        source: the file beside it.
        draw: queries of the tensors to draw, see `shard-explain`; by default what that draws.
        reshards: pairs of queries of tensors, from whose sharding to whose a plan is drawn.
    """

    name: str
    source: str
    draw: tuple[str, ...] = ()
    reshards: tuple[tuple[str, ...], ...] = ()


_DIRECTIVE = re.compile(r"^```\{gallery-program\} (\S+)\n((?:^:.*\n)*)", re.MULTILINE)


def pages(folder: Path) -> list[Page]:
    """Returns what the pages of a folder want, in the order of their names."""
    found = []
    for path in sorted(folder.glob("*.md")):
        for source, options in _DIRECTIVE.findall(path.read_text(encoding="utf-8")):
            given = dict(re.findall(r"^:(\w+): (.*)$", options, re.MULTILINE))
            reshards = (tuple(one.split(" to ")) for one in _listed(given.get("reshards", "")))
            found.append(Page(path.stem, source, _listed(given.get("draw", "")), tuple(reshards)))
    return found


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(";") if one.strip())


def picture_name(source: str, number: int) -> str:
    """Returns the name of a file: of the picture of a program, or from 1 on of one of its plans."""
    return f"program-{source.replace('.', '-')}-{number}.svg"


def read(folder: Path, page: Page) -> Shown:
    """Explains the program of a page in a folder, and draws it."""
    path = folder / page.source
    text = path.read_text(encoding="utf-8")
    explanation = _explained(path, text)
    report = explanation.report
    rows = [_row(one, path.name) for one in report.collectives]
    count = len(rows)
    total = "1 collective" if count == 1 else f"{count} collectives"
    if rows:
        rows.append((total, "", _bytes(report.bytes_received), _bytes(report.total_bytes), duration(report.time), ""))
    chosen = [tensor for query in page.draw for tensor in explanation.select(query)]
    meshes = explanation.meshes.values()
    return Shown(
        text,
        "mlir" if path.suffix == ".mlir" else "python",
        "; ".join(", ".join(f"{axis.name}={axis.size}" for axis in mesh.axes) for mesh in meshes),
        program_picture.svg(explanation, path.name, chosen),
        tuple(_plan(explanation, *queries) for queries in page.reshards),
        tuple(rows),
        f"{total}, {_bytes(report.bytes_received)} a device" if count else "no collectives",
        mlir_shard.print_module(explanation.module),
    )


def _explained(path: Path, text: str) -> Explanation:
    if path.suffix == ".mlir":
        module = mlir_shard.parse(text, mlir_shard.create_context(), path.name)
        return explain(module, sources={path.name: text})
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(text, path.name, "exec"), names)
    return names["program"].explain()


def _row(one: ReportedCollective, file: str) -> tuple[str, ...]:
    communication = one.communication
    name, _, place = one.place.partition(":")
    # Programs of torch have places in torch.
    where = f", line {place.partition(':')[0]}" if name == file else ""
    return (
        communication.kind.value.replace("_", "-"),
        axes_text(communication.axes),
        _bytes(round(communication.bytes_received)),
        _bytes(communication.total_bytes),
        duration(one.time),
        f"{one.op}{where}{', in a loop' if one.loops else ''}",
    )


def _bytes(size: int) -> str:
    return f"{size:,} B"


def _plan(explanation: Explanation, before: str, after: str) -> str:
    """The picture of the plan from the sharding of one tensor to that of another one."""
    source, target = (_only(explanation, query) for query in (before, after))
    element_size = source.bytes // prod(source.shape)
    plan = Planner().plan(_layout(explanation, source), _layout(explanation, target), element_size)
    return picture.svg(plan, f"{source.name}, {source.type}, to the sharding of {target.name}")


def _only(explanation: Explanation, query: str) -> Tensor:
    (tensor,) = explanation.select(query)
    return tensor


def _layout(explanation: Explanation, tensor: Tensor) -> TensorLayout:
    mesh = explanation.mesh_of(tensor)
    assert mesh is not None and tensor.sharding is not None
    return TensorLayout(tensor.sharding, mesh, tensor.shape)


def main() -> None:
    """Runs the command."""
    folder, made = map(Path, sys.argv[1:])
    for page in pages(folder):
        shown = read(folder, page)
        (made / f"{page.source}.json").write_text(json.dumps(asdict(shown)), encoding="utf-8")
        for number, drawn in enumerate((shown.picture, *shown.plans)):
            (made / picture_name(page.source, number)).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
