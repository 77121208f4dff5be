# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes and pipelines other than the host's: their names, and a line on each and on its options.

Those of the project are in `own_passes.txt` and `own_pipelines.txt`, so that help and names similar to a misspelt one
need no import of their modules; `tools/pass_table.py` writes the files. Those of plugins are read from the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard.passes import host_listing, registry
from mlir_shard.passes.host_listing import Summary
from mlir_shard.passes.options import Option
from mlir_shard.passes.registry import OWN_PACKAGE

PASSES_FILE = "own_passes.txt"
PIPELINES_FILE = "own_pipelines.txt"


def passes() -> Mapping[str, Summary]:
    """Returns every pass, sorted by name."""
    others = registry.registered(besides=OWN_PACKAGE)
    found = _own(PASSES_FILE) | {name: described_pass(one) for name, one in others.items()}
    return dict(sorted(found.items()))


def pipelines() -> Mapping[str, Summary]:
    """Returns every pipeline, sorted by name."""
    others = registry.registered_pipelines(besides=OWN_PACKAGE)
    found = _own(PIPELINES_FILE) | {name: described_pipeline(one) for name, one in others.items()}
    return dict(sorted(found.items()))


def stages() -> Mapping[str, str]:
    """Returns the stages of the project's passes in the order in which they run, with a line on each."""
    return host_listing.read_stages(PASSES_FILE) if registry.is_searched(OWN_PACKAGE) else {}


def _own(file: str) -> dict[str, Summary]:
    return host_listing.read_summaries(file) if registry.is_searched(OWN_PACKAGE) else {}


def described_pass(one: type[registry.Pass]) -> Summary:
    """Returns the summary of a pass, with the name of the operations that it runs on unless these are modules."""
    return Summary(with_anchor(one.summary, one.anchor), _described(one.options()), _stage(one.__module__))


def described_pipeline(one: registry.Pipeline) -> Summary:
    """Returns the summary of a pipeline."""
    return Summary(one.summary, _described(one.options))


def _stage(module: str) -> str:
    """Returns the folder of a module of the project's passes; empty for a module of a plugin."""
    inside = module.removeprefix(f"{OWN_PACKAGE}.")
    return "" if inside == module else inside.partition(".")[0]


def with_anchor(text: str, anchor: Any) -> str:
    """Appends the anchor of a pass to its summary, unless the pass runs on modules or on any operation."""
    return text if anchor in (None, "builtin.module") else f"{text} [{anchor}]"


def _described(options: Sequence[Option]) -> dict[str, str]:
    return {one.name: f"{one.help} ({one.type_text}; default {one.default_text})".lstrip() for one in options}


def written(summaries: Mapping[str, Summary], stages: Mapping[str, str]) -> str:
    """Writes the text of a file of summaries by stage: the inverse of `host_listing.read_summaries`, `read_stages`."""
    lines = []
    for stage, title in {"": "", **stages}.items():
        lines += [f"[{stage}]  {title}"] if stage else []
        for name, one in summaries.items():
            if one.stage == stage:
                lines += [f"{name}  {one.text}", *(f"  {option}  {about}" for option, about in one.options.items())]
    return "".join(f"{line}\n" for line in lines)
