# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The help of shard-opt: its options, and every pass with its summary and options."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mlir_shard.passes import host_listing, host_passes, registry
from mlir_shard.passes.options import Option
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
    passes, pipelines = registry.registered(), registry.registered_pipelines()
    for name, one in passes.items():
        yield from _row(2, f"--{name}", _summary(one.summary, one.anchor))
        if with_options:
            yield from _options(one.options())
    if pipelines:
        yield ""
        yield "Pipelines:"
    for name, pipeline in pipelines.items():
        yield from _row(2, f"--{name}", pipeline.summary)
        if with_options:
            yield from _options(pipeline.options)
    yield ""
    yield "Passes and pipelines of upstream MLIR and StableHLO:"
    for name, known in host_listing.summaries().items():
        if name in passes or name in pipelines:
            continue
        host_pass = host_passes.make(name)
        yield from _row(2, f"--{name}", _summary(known.text, None if host_pass.is_pipeline else host_pass.anchor))
        if with_options:
            for option_name, default in host_passes.options(name):
                help_of_option = known.options.get(option_name, "")
                yield from _row(6, option_name, f"{help_of_option} (default {default or 'empty'})".strip())


def _summary(text: str, anchor: str | None) -> str:
    """A summary, and what the pass runs on where that is not the module."""
    return text if anchor in (None, "builtin.module") else f"{text} [{anchor}]"


def _options(options: Sequence[Option]) -> Iterator[str]:
    for one in options:
        about = f"{one.help} " if one.help else ""
        yield from _row(6, one.name, f"{about}({one.type_text}; default {one.default_text})")


def _row(indent: int, left: str, right: str) -> list[str]:
    head = f"{' ' * indent}{left}"
    if len(head) >= _COLUMN:
        return [head, *_wrapped("", right)]
    return _wrapped(head, right)


def _wrapped(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN - 2) or [""]
    rows = [f"{head:<{_COLUMN}}- {lines[0]}", *(f"{'':<{_COLUMN}}  {line}" for line in lines[1:])]
    return [row.rstrip() for row in rows]
