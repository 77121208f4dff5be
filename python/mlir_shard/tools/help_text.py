# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The help of shard-opt: its options, the passes by stage, and the description of each pass."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mlir_shard.passes import host_listing, host_passes, own_listing, registry, resolution
from mlir_shard.passes.host_listing import Summary
from mlir_shard.passes.options import did_you_mean
from mlir_shard.passes.resolution import Nest, Step
from mlir_shard.tools.command_line import OPTIONS, UsageError

_WIDTH, _COLUMN = 120, 44
_NARROW, _NARROW_COLUMN = 100, 8
"""If the output is narrower than this width, summaries are below the names, from this column on."""
_LEAST_WIDTH = 40

_USAGE = (
    "shard-opt: runs passes on MLIR modules, with sharding in the dialects sdy and shard",
    "",
    "usage: shard-opt [options] [passes] [input file, or - for standard input]",
    "",
    "Flags start with one or two dashes. Passes run in the order of their flags, each on the operations of its "
    "anchor; options of a pass follow its name: --name=option=value, or --name='option=value other=value'.",
)


_ALL = "all"


def help_text(with_options: bool = False) -> str:
    """Returns the usage, the options of the driver, and the passes by stage, on request with their options."""
    usage = [line for paragraph in _USAGE for line in textwrap.wrap(paragraph, _width()) or [""]]
    lines = [*usage, "", "Options:", *(line for name in OPTIONS for line in _driver_option(name))]
    return "\n".join([*lines, "", *_passes(with_options)]) + "\n"


def passes_text() -> str:
    """Returns the output of `--list-passes`."""
    return "\n".join(_passes(with_options=False)) + "\n"


def text_on(names: Sequence[str]) -> str:
    """Returns the output of `--help=NAME,...`; for `all`, the help with the options of all passes.

    Raises:
        UsageError: one of the names is neither a pass or pipeline nor an option.
    """
    if not names or _ALL in names:
        return help_text(with_options=bool(names))
    return "\n\n".join("\n".join(_on(name.lstrip("-"))) for name in dict.fromkeys(names)) + "\n"


def _on(name: str) -> list[str]:
    if name in OPTIONS:
        return _driver_option(name)
    found = registry.find_pass(name)
    if found is not None:
        runs_on = f"on {found.anchor}" if found.anchor else "on any operation"
        return _description(
            "pass", name, replace(own_listing.described_pass(found), text=found.summary), runs_on, found.__doc__
        )
    pipeline = registry.find_pipeline(name)
    if pipeline is not None:
        steps = ", ".join(_names(resolution.make(name)))
        description = f"{pipeline.description}\n\nRuns these passes where they apply: {steps}."
        return _description("pipeline", name, own_listing.described_pipeline(pipeline), "", description)
    if host_passes.is_registered(name):
        host_pass = host_passes.make(name)
        known = host_listing.summaries().get(name, Summary("", {}))
        kind = "pipeline" if host_pass.is_pipeline else "pass"
        runs_on = f"on {host_pass.anchor}" if host_pass.anchor else "on any operation"
        summary = Summary(known.text, _host_options(name, known))
        return _description(f"{kind} of upstream", name, summary, "" if host_pass.is_pipeline else runs_on, None)
    hint = did_you_mean(name, (*OPTIONS, *resolution.known_names()))
    raise UsageError(f"unknown option or pass '{name}'{hint or '; --help lists both'}")


def _names(steps: Iterable[Step]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Nest):
            yield from _names(step.steps)
        else:
            yield step.name


def _description(kind: str, name: str, one: Summary, runs_on: str, description: str | None) -> list[str]:
    lines = [*textwrap.wrap(f"--{name}: {one.text}", _width(), break_on_hyphens=False), ""]
    lines += [f"A {kind}{f' that runs {runs_on}' if runs_on else ''}."]
    for paragraph in inspect.cleandoc(description).split("\n\n") if description else ():
        lines += ["", *textwrap.wrap(paragraph, _width(), break_long_words=False, break_on_hyphens=False)]
    if one.options:
        lines += ["", f"Options, as in --{name}={next(iter(one.options))}=...:"]
        lines += [line for option, about in one.options.items() for line in _row(2, option, about)]
    return lines


def _driver_option(name: str) -> list[str]:
    one = OPTIONS[name]
    dashes = "-" if len(name) == 1 else "--"
    value = f"[={one.value}]" if one.value and one.implied is not None else f"={one.value}" if one.value else ""
    return _row(2, f"{dashes}{name}{value}", one.help)


def _passes(with_options: bool) -> Iterator[str]:
    passes, pipelines, stages = own_listing.passes(), own_listing.pipelines(), own_listing.stages()
    yield from _group("Pipelines:", pipelines, with_options)
    for stage, title in stages.items():
        inside = {name: one for name, one in passes.items() if one.stage == stage}
        yield from _group(f"{stage}: {title}", inside, with_options)
    others = {name: one for name, one in passes.items() if one.stage not in stages}
    yield from _group("Passes of plugins:", others, with_options)
    hosts = {name: one for name, one in host_listing.summaries().items() if name not in {**passes, **pipelines}}
    described = {name: _of_host(name, known, with_options) for name, known in hosts.items()}
    yield from _group("Passes and pipelines of upstream MLIR and StableHLO:", described, with_options)
    about = f"--help=PASS describes a pass or pipeline with its options, and --help={_ALL} lists the options of all."
    yield from textwrap.wrap(about, _width())


def _of_host(name: str, known: Summary, with_options: bool) -> Summary:
    host_pass = host_passes.make(name)
    text = own_listing.with_anchor(known.text, None if host_pass.is_pipeline else host_pass.anchor)
    return Summary(text, _host_options(name, known) if with_options else {})


def _host_options(name: str, known: Summary) -> dict[str, str]:
    return {
        option: f"{known.options.get(option, '')} (default {default or 'empty'})".strip()
        for option, default in host_passes.options(name)
    }


def _group(title: str, summaries: Mapping[str, Summary], with_options: bool) -> Iterator[str]:
    if not summaries:
        return
    yield from textwrap.wrap(title, _width())
    for name, one in summaries.items():
        yield from _row(2, f"--{name}", one.text)
        for option, about in one.options.items() if with_options else ():
            yield from _row(6, option, about)
    yield ""


@functools.cache
def _width() -> int:
    """Returns the width of the terminal, at most `_WIDTH`, and `_WIDTH` if the output is not a terminal."""
    if not sys.stdout.isatty():
        return _WIDTH
    return max(_LEAST_WIDTH, min(_WIDTH, os.get_terminal_size(sys.stdout.fileno()).columns))


def _row(indent: int, left: str, right: str) -> list[str]:
    head = f"{' ' * indent}{left}"
    if _width() < _NARROW:
        around = " " * (indent + _NARROW_COLUMN)
        return [head, *textwrap.wrap(right, _width(), initial_indent=around, subsequent_indent=around)]
    if len(head) >= _COLUMN:
        return [head, *_wrapped("", right)]
    return _wrapped(head, right)


def _wrapped(head: str, text: str) -> list[str]:
    lines = textwrap.wrap(text, _width() - _COLUMN - 2) or [""]
    rows = [f"{head:<{_COLUMN}}- {lines[0]}", *(f"{'':<{_COLUMN}}  {line}" for line in lines[1:])]
    return [row.rstrip() for row in rows]
