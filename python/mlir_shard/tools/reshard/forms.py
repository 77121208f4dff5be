# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan in each of the forms that shard-reshard writes."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape

from rich.console import Console

from mlir_shard.resharding.plan import Plan
from mlir_shard.tools.reshard.picture import svg
from mlir_shard.tools.reshard.report import report

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
    """The report in so many columns, in colour by the codes of terminals or not at all."""
    console = _console(width, in_colour=in_colour)
    with console.capture() as captured:
        console.print(report(plan, title, notes))
    return re.sub(r"[ ]+$", "", captured.get(), flags=re.MULTILINE)


def html(plan: Plan, title: str, notes: Sequence[str], width: int) -> str:
    """A page with the picture and the report."""
    console = _console(width, in_colour=True)
    console.print(report(plan, title, notes))
    told = console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    return _PAGE.format(title=escape(title), picture=svg(plan, title), text=told)


def _console(width: int, *, in_colour: bool) -> Console:
    # Nothing of the environment counts here: the same plan is the same text.
    return Console(
        file=io.StringIO(),
        record=in_colour,
        width=width,
        height=100,
        color_system="truecolor" if in_colour else None,
        force_terminal=in_colour,
        no_color=not in_colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
