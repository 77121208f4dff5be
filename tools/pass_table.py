# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the summaries of the project's passes and pipelines, which `shard-opt --help` shows.

    python tools/pass_table.py

The files are `own_passes.txt` and `own_pipelines.txt` in python/mlir_shard/passes.
"""

from __future__ import annotations

from pathlib import Path

from mlir_shard.passes import own_listing, registry

FOLDER = Path(__file__).resolve().parent.parent / "python" / "mlir_shard" / "passes"
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
"""The folders of passes, in the order in which they run, with what their passes do."""


def tables() -> dict[str, str]:
    """The texts of the files by name."""
    registry.search(registry.OWN_PACKAGE)
    inside = f"{registry.OWN_PACKAGE}."
    passes = {name: one for name, one in registry.registered().items() if one.__module__.startswith(inside)}
    pipelines = registry.registered_pipelines()
    own = {name: one for name, one in pipelines.items() if one.build.__module__.startswith(inside)}
    described = {name: own_listing.described_pass(one) for name, one in passes.items()}
    of_passes = own_listing.written(described, STAGES)
    of_pipelines = own_listing.written({name: own_listing.described_pipeline(one) for name, one in own.items()}, {})
    return {
        own_listing.PASSES_FILE: HEAD.format("passes") + of_passes,
        own_listing.PIPELINES_FILE: HEAD.format("pipelines") + of_pipelines,
    }


def main() -> None:
    """Writes the files."""
    for name, text in tables().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
