# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the summaries of the project's passes and pipelines, which `shard-opt --help` shows, and docs/passes.md.

    python tools/pass_table.py

The files of summaries are `own_passes.txt` and `own_pipelines.txt` in python/mlir_shard/passes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from mlir_shard.passes import own_listing, registry
from mlir_shard.passes.host_listing import Summary

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "python" / "mlir_shard" / "passes"
PAGE = ROOT / "docs" / "passes.md"
PAGE_HEAD = """\
# Passes and pipelines

Written by `python tools/pass_table.py` from the passes. `shard-opt --help PASS` prints the same of one. A pass runs on
a module where nothing else is said. [Architecture](architecture.md#stages) has the order of the stages.
"""
HEAD = """\
# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Written by tools/pass_table.py: the {} of the project with their summaries; indented below each are its options.
"""


STAGES = {
    "normalize": "bring every input language and form into the one that propagation reads",
    "propagate": "decide the sharding of every tensor",
    "reshard": "make changes of sharding explicit, and collectives of them",
    "halo": "exchange the edges of shards between neighbours",
    "padding": "pad global programs so that shards are even",
    "partition": "make the global program the local one that each device runs",
    "communication": "make the collectives of a local program fewer or smaller",
    "canonicalize": "simplify",
}
"""The folders of passes, in the order in which they run, with descriptions of their passes."""


_INSIDE = f"{registry.OWN_PACKAGE}."


def passes() -> dict[str, type[registry.Pass]]:
    """Returns the project's passes by name."""
    registry.search(registry.OWN_PACKAGE)
    return {name: one for name, one in registry.registered().items() if one.__module__.startswith(_INSIDE)}


def pipelines() -> dict[str, registry.Pipeline]:
    """Returns the project's pipelines by name."""
    registry.search(registry.OWN_PACKAGE)
    found = registry.registered_pipelines()
    return {name: one for name, one in found.items() if one.build.__module__.startswith(_INSIDE)}


def tables() -> dict[str, str]:
    """Returns the texts of the files of summaries by name."""
    described = {name: own_listing.described_pass(one) for name, one in passes().items()}
    of_passes = own_listing.written(described, STAGES)
    of_pipelines = own_listing.written(
        {name: own_listing.described_pipeline(one) for name, one in pipelines().items()}, {}
    )
    return {
        own_listing.PASSES_FILE: HEAD.format("passes") + of_passes,
        own_listing.PIPELINES_FILE: HEAD.format("pipelines") + of_pipelines,
    }


def page() -> str:
    """Returns the text of docs/passes.md."""
    lines = [PAGE_HEAD, "## Pipelines"]
    for name, pipeline in sorted(pipelines().items()):
        lines += _section(name, own_listing.described_pipeline(pipeline), pipeline.description)
    described = {name: (one, own_listing.described_pass(one)) for name, one in sorted(passes().items())}
    for stage, text in STAGES.items():
        lines += ["", f"## {stage.capitalize()}", "", f"Passes that {text}."]
        for name, (one, summary) in described.items():
            if summary.stage == stage:
                lines += _section(name, summary, inspect.cleandoc(one.__doc__ or ""))
    return "\n".join(lines) + "\n"


def _section(name: str, summary: Summary, description: str) -> Iterator[str]:
    yield from ("", f"### `{name}`", "", _prose(summary.text) + ".")
    for paragraph in description.split("\n\n"):
        if paragraph.startswith(" "):
            yield from ("", "<!-- not run: a drawing -->", "```text", paragraph, "```")
        elif paragraph:
            yield from ("", _prose(paragraph))
    if summary.options:
        yield from ("", "| option | meaning |", "| --- | --- |")
    for option, about in summary.options.items():
        yield f"| `{option}` | {_prose(about).replace('|', chr(92) + '|')} |"


def _prose(text: str) -> str:
    """Returns a text as Markdown, in which the characters of tags and links are escaped."""
    return text.replace("<", "&lt;").replace("[", chr(92) + "[") if "`" not in text else text


def main() -> None:
    """Writes the files."""
    for name, text in tables().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
