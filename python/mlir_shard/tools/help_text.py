# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The help of shard-opt: its options, and every pass with its summary and options."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mlir_shard.passes import host_listing, host_passes, own_listing
from mlir_shard.passes.host_listing import Summary
from mlir_shard.tools.command_line import OPTIONS

_WIDTH = 120
_COLUMN = 44

_USAGE = """\
shard-opt: runs passes on MLIR modules, with sharding in the dialects sdy and shard

usage: shard-opt [options] [passes] [input file, or - for standard input]

Flags take one or two dashes. Passes run in the order of their flags, each on the operations it is for; options of a
pass follow its name: --name=option=value, or --name='option=value other=value'.
"""


def help_text() -> str:
    """All that `--help` prints."""
    lines = [_USAGE, "Options:"]
    for name, one in OPTIONS.items():
        dashes = "-" if len(name) == 1 else "--"
        value = f"[={one.value}]" if one.value and one.implied is not None else f"={one.value}" if one.value else ""
        lines += _row(2, f"{dashes}{name}{value}", one.help)
    return "\n".join([*lines, "", *_passes(with_options=True)]) + "\n"


def passes_text() -> str:
    """All that `--list-passes` prints."""
    return "\n".join(_passes(with_options=False)) + "\n"


def _passes(with_options: bool) -> Iterator[str]:
    yield "Passes:"
    passes, pipelines = own_listing.passes(), own_listing.pipelines()
    for name, one in passes.items():
        yield from _listed(name, one, with_options)
    if pipelines:
        yield ""
        yield "Pipelines:"
    for name, one in pipelines.items():
        yield from _listed(name, one, with_options)
    yield ""
    yield "Passes and pipelines of upstream MLIR and StableHLO:"
    for name, known in host_listing.summaries().items():
        if name in passes or name in pipelines:
            continue
        host_pass = host_passes.make(name)
        text = own_listing.with_anchor(known.text, None if host_pass.is_pipeline else host_pass.anchor)
        options = {
            option: f"{known.options.get(option, '')} (default {default or 'empty'})".strip()
            for option, default in (host_passes.options(name) if with_options else ())
        }
        yield from _listed(name, Summary(text, options), with_options)


def _listed(name: str, one: Summary, with_options: bool) -> Iterator[str]:
    yield from _row(2, f"--{name}", one.text)
    for option, about in one.options.items() if with_options else ():
        yield from _row(6, option, about)


def _row(indent: int, left: str, right: str) -> list[str]:
    head = f"{' ' * indent}{left}"
    if len(head) >= _COLUMN:
        return [head, *_wrapped("", right)]
    return _wrapped(head, right)


def _wrapped(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN - 2) or [""]
    rows = [f"{head:<{_COLUMN}}- {lines[0]}", *(f"{'':<{_COLUMN}}  {line}" for line in lines[1:])]
    return [row.rstrip() for row in rows]
