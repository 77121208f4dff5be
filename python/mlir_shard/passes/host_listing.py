# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes and dialects of the host, which the host's bindings do not list, with one line on each pass.

They are in `host_passes.txt` and `host_dialects.txt`; a test compares these with the libraries of the host.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlir_shard.passes import host_passes

PASSES_FILE = "host_passes.txt"


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """A line on a pass, a line on each of its options that has a description, and its stage, empty if it has none."""

    text: str
    options: Mapping[str, str]
    stage: str = ""


@functools.cache
def summaries() -> Mapping[str, Summary]:
    """Returns the passes and pipelines of the host that are registered, sorted by name."""
    return {name: one for name, one in read_summaries(PASSES_FILE).items() if host_passes.is_registered(name)}


def read_summaries(file: str) -> dict[str, Summary]:
    """Reads the summaries in a file of this folder: lines `name  text`, each followed by indented lines for options.

    The passes below a line `[name]  text` belong to the stage `name`.
    """
    found: dict[str, Summary] = {}
    options: dict[str, str] = {}
    stage = ""
    for line in _lines(file):
        name, _, text = line.strip().partition("  ")
        if line.startswith("["):
            stage = name[1:-1]
        elif line.startswith(" "):
            options[name] = text
        else:
            options = {}
            found[name] = Summary(text, options, stage)
    return found


def read_stages(file: str) -> dict[str, str]:
    """Reads the stages in a file of this folder, in the order of the file, with a line on each."""
    heads = (line.partition("  ") for line in _lines(file) if line.startswith("["))
    return {name[1:-1]: text for name, _, text in heads}


def dialects(context: Any) -> tuple[str, ...]:
    """Loads the host's dialects that a context can load, and returns their namespaces, sorted."""
    found = []
    for name in _lines("host_dialects.txt"):
        try:
            context.get_dialect_descriptor(name)
        except ValueError:
            continue
        found.append(name)
    return tuple(found)


@functools.cache
def dialect_names() -> frozenset[str]:
    """Returns the namespaces of the host's dialects."""
    return frozenset(_lines("host_dialects.txt"))


def _lines(file: str) -> Iterator[str]:
    for line in (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line
