# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gallery: pages that show a program with its picture and its collectives, and cards of all pages.

The directive `gallery-program` stands on each page and names a file beside it, from which `programs.py` makes the rest:

    ```{gallery-program} mlp.mlir
    :draw: %x; %w
    :reshards: %a to %b; %b to %c
    ```

`gallery-cards` stands on the page with the contents of the gallery.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from programs import pages, picture_name
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "gallery"
_CONTENTS = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADINGS = ("collective", "axes", "a device receives", "all receive", "time", "for")
_NUMBERS = (2, 3, 4)


def _made(app: Any) -> Path:
    return Path(app.doctreedir) / "gallery"


def _make(app: Any) -> None:
    folder = _made(app)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(HERE / "programs.py"), str(FOLDER), str(folder)], check=True)


class _Directive(SphinxDirective):
    def read(self, name: str) -> dict[str, Any]:
        """What is shown of a program."""
        self.env.note_dependency(str(FOLDER / name))
        shown: dict[str, Any] = json.loads((_made(self.env.app) / f"{name}.json").read_text(encoding="utf-8"))
        return shown

    def image(self, name: str, number: int, text: str) -> nodes.image:
        """A picture of it, by its place from the folder of the pages."""
        made = os.path.relpath(_made(self.env.app) / picture_name(name, number), self.env.srcdir)
        return nodes.image(uri=f"/{made}", alt=text)


class Program(_Directive):
    """Shows a program: its source, the picture, the collectives, and the local program behind a click."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"draw": directives.unchanged, "reshards": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Makes the nodes."""
        name = self.arguments[0]
        return list(self._nodes(name, self.read(name)))

    def _nodes(self, name: str, shown: dict[str, Any]) -> Iterator[nodes.Node]:
        yield nodes.rubric(text="Program")
        yield nodes.literal_block(shown["source"], shown["source"], language=shown["language"])
        yield nodes.rubric(text="Shardings")
        yield nodes.container("", self.image(name, 0, f"The tensors of {name} on the devices"), classes=["picture"])
        for number in range(1, len(shown["plans"]) + 1):
            yield nodes.rubric(text="The reshard")
            picture = self.image(name, number, f"The plan of a reshard in {name}")
            yield nodes.container("", picture, classes=["picture"])
        yield nodes.rubric(text="Collectives")
        yield _table(shown["collectives"]) if shown["collectives"] else nodes.paragraph(text="There are none.")
        local = shown["local"]
        summary = f"The local program, {local.count(chr(10)):,} lines"
        yield nodes.raw("", f"<details><summary>{summary}</summary>", format="html")
        yield nodes.literal_block(local, local, language="mlir")
        yield nodes.raw("", "</details>", format="html")


def _table(rows: list[list[str]]) -> nodes.Node:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in _HEADINGS), cols=len(_HEADINGS))
    group += nodes.thead("", _table_row(_HEADINGS))
    group += nodes.tbody("", *map(_table_row, rows))
    return nodes.table("", group, classes=["collectives"])


def _table_row(cells: Any) -> nodes.row:
    made = nodes.row()
    for number, cell in enumerate(cells):
        classes = ["number"] if number in _NUMBERS else []
        made += nodes.entry("", nodes.paragraph(text=cell), classes=classes)
    return made


class Cards(_Directive):
    """Shows a card of each page in the contents of the page that it is on: the title, the picture, and the mesh."""

    def run(self) -> list[nodes.Node]:
        """Makes the nodes."""
        sources = {f"gallery/{page.name}": page.source for page in pages(FOLDER)}
        text = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        listed = [line for block in _CONTENTS.findall(text) for line in block.splitlines() if line in sources]
        if missing := set(sources).difference(listed):
            raise self.error(f"not in the contents: {', '.join(sorted(missing))}")
        return [nodes.container("", *(self._card(page, sources[page]) for page in listed), classes=["gallery-cards"])]

    def _card(self, page: str, name: str) -> nodes.Node:
        shown = self.read(name)
        target = self.env.app.builder.get_relative_uri(self.env.docname, page)
        picture = nodes.reference("", "", self.image(name, 0, ""), refuri=target, internal=True, classes=["preview"])
        title = addnodes.pending_xref("", nodes.inline(), refdomain="std", reftype="doc", reftarget=f"/{page}")
        title["refexplicit"], title["refwarn"] = False, True
        facts = nodes.paragraph(text=f"{shown['mesh']}: {shown['summary']}")
        heading = nodes.paragraph("", "", title, classes=["gallery-title"])
        return nodes.container("", heading, nodes.paragraph("", "", picture), facts, classes=["gallery-card"])


def setup(app: Any) -> dict[str, bool]:
    """Adds the directives to Sphinx, and makes what they show before pages are read."""
    app.connect("builder-inited", _make)
    app.add_directive("gallery-program", Program)
    app.add_directive("gallery-cards", Cards)
    return {"parallel_read_safe": True}
