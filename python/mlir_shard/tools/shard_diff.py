# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-diff: compares the shardings, the collectives and the bytes of two programs, for people and for CI."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.garbage import fewer_collections
from mlir_shard.tools import output
from mlir_shard.tools.argument_parser import ArgumentParser, OneOf, number
from mlir_shard.tools.command_line import UsageError, exit_status

if TYPE_CHECKING:
    from mlir_shard.explain.difference.changes import Difference
    from mlir_shard.explain.quantities import Limit
    from mlir_shard.tools.source import Console

TOOL = "shard-diff"
SAME, DIFFERENT, FAILED = 0, 1, 2
TEXT, MARKDOWN, JSON = "text", "markdown", "json"
DEFAULT_WIDTH, LEAST_WIDTH = 120, 40

_DESCRIPTION = """\
Compares two programs by their shardings after propagation and their communication after partitioning. Names, the order
of functions and the order of independent operations are ignored. As for diff, the exit status is 0 if there are no
differences above a threshold, 1 if there are, and 2 on an error."""
_EPILOGUE = """\
A threshold limits the increase of a quantity (bytes, memory, time or collectives), as an amount or in per cent, or the
number of annotations, shardings or operations that change. Without a threshold, every difference counts."""


@dataclasses.dataclass(frozen=True, slots=True)
class DiffArguments:
    """The arguments of the command line; `-` is standard input or output."""

    before: str
    after: str
    format: str | None
    collectives: str
    threshold: list[dict[str, Limit]]
    keep_order: bool
    load: list[str]
    output: str
    width: int | None


def parse(argv: Sequence[str]) -> DiffArguments:
    """Parses a command line; raises UsageError if it is invalid. Prints and exits for --help and --version."""
    arguments = DiffArguments(**vars(_parser().parse_args(argv)))
    if arguments.before == arguments.after == "-":
        raise UsageError("standard input holds a single program: specify a file for the other one")
    return arguments


def _parser() -> ArgumentParser:
    parser = ArgumentParser(TOOL, _DESCRIPTION, _EPILOGUE)
    add = parser.add_argument
    add("before", metavar="BEFORE", help="a module annotated for sdy or with upstream's shard, or a local one")
    add("after", metavar="AFTER", help="the module to compare with it; - is standard input")
    add(
        "--format",
        type=OneOf((TEXT, MARKDOWN, JSON), "is not a format"),
        metavar="FORMAT",
        help="text, markdown for the summary of a job on GitHub, or json (default: by the suffix of the output)",
    )
    add(
        "--threshold",
        type=_thresholds,
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="the threshold of a difference: bytes=5%%, memory=10MiB, time=1ms, collectives=0, shardings=10, or a "
        "comma-separated list (repeatable)",
    )
    add(
        "--collectives",
        type=OneOf(("shard", "stablehlo"), "is not a dialect of collectives"),
        default="shard",
        metavar="DIALECT",
        help="the collectives of the local programs: shard (the default) or stablehlo",
    )
    add(
        "--keep-order",
        action="store_true",
        help="partition AFTER in its own order of operations, not in that of BEFORE",
    )
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes and rules from a Python file")
    add("-o", "--output", default="-", metavar="FILE", help="the output file; - is standard output (the default)")
    width = number(f"is not a width: expected {LEAST_WIDTH} columns or more", LEAST_WIDTH, 10_000)
    add("--width", type=width, metavar="COLUMNS", help="the width of text (default: that of the terminal, else 120)")
    return parser


def _thresholds(text: str) -> dict[str, Limit]:
    from mlir_shard.explain.difference.changes import THRESHOLDS
    from mlir_shard.explain.quantities import read_limits

    try:
        return read_limits(text, THRESHOLDS, may_be_relative=True)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-diff; returns its exit status: 0, 1 for a difference, 2 for any error, 130 if interrupted."""
    given = sys.argv[1:] if argv is None else argv
    with fewer_collections():
        return exit_status(TOOL, lambda: _drive(parse(given)), FAILED)


def _drive(arguments: DiffArguments) -> int:
    from mlir_shard.passes.diagnostic import at, location_of
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.tools import crashes
    from mlir_shard.tools.modules import Reported
    from mlir_shard.tools.source import Console

    crashes.report(TOOL, FAILED)
    output.check_form(arguments.output, "a comparison is written to a .md or .json file, or as text to any other file")
    output.check(arguments.output)
    console = Console(sys.stderr)
    try:
        difference = _compare(arguments, console)
    except Reported:
        return FAILED
    except PassFailure as failure:
        for one in failure.diagnostics or (at("error", failure.message, location_of(failure.where)),):
            console.report(one)
        raise UsageError("the programs cannot be compared, because one cannot be partitioned") from failure
    return _status(arguments, difference)


def _status(arguments: DiffArguments, difference: Difference) -> int:
    """Writes the difference; returns `DIFFERENT` if it exceeds a threshold or none is given and it is not empty."""
    limits = {name: limit for one in arguments.threshold for name, limit in one.items()}
    try:
        exceeded = _exceeded(difference, limits)
    except ValueError as error:
        raise UsageError(str(error)) from None
    _write(arguments, difference, exceeded)
    is_different = bool(exceeded) if limits else bool(difference)
    return DIFFERENT if is_different else SAME


def _compare(arguments: DiffArguments, console: Console) -> Difference:
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.explain.difference.compare import compare
    from mlir_shard.tools.modules import load_passes, read_module

    load_passes(arguments.load, console)
    context = create_context()
    before, after = (read_module(path, context, console) for path in (arguments.before, arguments.after))
    said = set[str]()

    def report(one: Any) -> None:
        # The failure contains the errors; both programs and both pipelines may give the same warning.
        if one.severity != "error" and str(one) not in said:
            said.add(str(one))
            console.report(one)

    return compare(before, after, collectives=arguments.collectives, keeps_order=arguments.keep_order, report=report)


def _exceeded(difference: Difference, limits: dict[str, Limit]) -> dict[str, str]:
    """Returns the exceeded thresholds, each with a line that describes it."""
    from mlir_shard.explain.difference.changes import NUMBERS
    from mlir_shard.explain.difference.report import growth

    found = {}
    for name, grown in difference.exceeded(limits).items():
        by = f"{round(grown):,}"
        if name not in NUMBERS:
            by = growth(name, difference.before[name], difference.after[name])
        found[name] = f"the change of {name}, {by}, exceeds the threshold of {limits[name].text}"
    return found


def _write(arguments: DiffArguments, difference: Difference, exceeded: dict[str, str]) -> None:
    from mlir_shard.explain.difference import report

    names = arguments.before, arguments.after
    form = arguments.format or {".json": JSON, ".md": MARKDOWN}.get(output.suffix(arguments.output), TEXT)
    if form == JSON:
        data = {"before": names[0], "after": names[1], "exceeded": sorted(exceeded), **difference.as_data()}
        output.write(arguments.output, json.dumps(data, indent=2) + "\n")
        return
    if form == MARKDOWN:
        output.write(arguments.output, report.as_markdown(difference, names, exceeded))
        return
    on_terminal = arguments.output == "-" and sys.stdout.isatty()
    width = arguments.width or (os.get_terminal_size().columns if on_terminal else DEFAULT_WIDTH)
    if on_terminal:
        from rich.console import Console

        Console(width=width).print(report.as_tables(difference, names))
    else:
        output.write(arguments.output, report.as_text(difference, names, width) + "\n")
    for text in exceeded.values():
        print(f"{TOOL}: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
