# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_MOST_LINES = 400
"""The maximum number of lines of a module that are shown."""


def program_html(title: str, text: str, facts: Sequence[str] = ()) -> str:
    """Returns a program as HTML: its title, facts about it, and its text, which a click expands.

    Args:
        title: the title, in one line.
        text: the module; its first lines are shown.
        facts: the facts, in one line each.
    """
    lines = text.rstrip("\n").splitlines()
    more = len(lines) - _MOST_LINES
    shown = "\n".join([*lines[:_MOST_LINES], *([f"… and {more:,} more lines"] if more > 0 else [])])
    told = "".join(f"<div>{escape(fact)}</div>" for fact in facts)
    return (
        f"<div><code>{escape(title)}</code></div>{told}"
        f"<details><summary>{len(lines):,} lines of MLIR</summary><pre>{escape(shown)}</pre></details>"
    )
