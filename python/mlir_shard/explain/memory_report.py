# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The predicted memory of a rank as a table and as JSON."""

from __future__ import annotations

import json

from rich import box as borders
from rich.table import Table
from rich.text import Text

from mlir_shard.explain.memory import PeakMemory
from mlir_shard.passes.fitted_table import as_text

# A row is one line, so that a search finds a place with a long path.
_WIDTH = 10_000


def report_text(memory: PeakMemory, *, is_json: bool) -> str:
    """Returns the parts of the memory, one in a line, and the largest values in it, with a line break at the end."""
    if is_json:
        return json.dumps(memory.as_data(), indent=2) + "\n"
    when = f"most is live at {memory.at}" if memory.at else "nothing is computed"
    sentence = f"{when}; the largest values then:"
    return f"{as_text(_parts(memory), _WIDTH)}\n{sentence}\n{as_text(_values(memory), _WIDTH)}\n"


def _parts(memory: PeakMemory) -> Table:
    parts = Table(box=borders.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    parts.add_column(f"memory of a {'device' if memory.engine == 'pjrt' else 'rank'}", "at most")
    parts.add_column("bytes", f"{memory.peak:,} B", justify="right")
    for name in ("arguments", "results", "temporaries", "collectives", "constants"):
        parts.add_row(name, f"{getattr(memory, name):,} B")
    if memory.aliased:
        parts.add_row("results in arguments", f"({memory.aliased:,} B)")
    return parts


def _values(memory: PeakMemory) -> Table:
    values = Table(box=borders.SIMPLE_HEAD, pad_edge=False)
    values.add_column("bytes", justify="right")
    values.add_column("kind")
    values.add_column("value")
    values.add_column("at")
    for one in memory.live:
        values.add_row(f"{one.bytes:,} B", one.kind, Text(one.name), Text(one.place))
    return values
