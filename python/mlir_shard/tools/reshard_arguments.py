# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-reshard's command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from mlir_shard.tools.command_line import UsageError

FORMATS = ("auto", "text", "rich", "svg", "html", "json")
OBJECTIVES = ("time", "bytes", "memory")
LEAST_WIDTH = 40

_DESCRIPTION = """\
Plans how a tensor on a mesh of devices goes from one sharding to another, and shows it: its boxes before and after,
each step with what devices send, receive and hold, and the least bytes there are. The exit status is 0, or 1 for any
error."""

_EPILOGUE = """\
Shardings are written as in sdy, '[{"x"}, {"y"}]', with sub-axes '"x":(1)2' and ', unreduced={"z"}' behind them, or as
the numbers of mesh axes: '[[0], [1]]', ', unreduced=[2]'."""


@dataclasses.dataclass(frozen=True, slots=True)
class ReshardArguments:
    """What the command line asks for; `-` is standard output, and None what follows from the others."""

    mesh: str
    target_mesh: str | None
    shape: str
    source: str
    target: str
    objective: str | None
    direct_exchange: bool
    costs: str | None
    format: str
    output: str
    colour: str
    width: int | None
    simulate: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(argv: Sequence[str], version: str) -> ReshardArguments:
    """Reads a command line; UsageError where it is none. Prints and exits for --help and --version."""
    return ReshardArguments(**vars(_parser(version).parse_args(argv)))


def _parser(version: str) -> _Parser:
    parser = _Parser(prog="shard-reshard", description=_DESCRIPTION, epilog=_EPILOGUE, allow_abbrev=False)
    add = parser.add_argument
    add("source", metavar="SOURCE", help="the sharding before")
    add("target", metavar="TARGET", help="the sharding after")
    add("--mesh", required=True, metavar="MESH", help="""x=2,y=3, or '<["x"=2, "y"=3]>', or 2x3 without names""")
    add("--target-mesh", metavar="MESH", help="the mesh after, of the same devices (default: the mesh before)")
    add("--shape", required=True, metavar="SHAPE", help="sizes and element type, as 12x18xf32")
    add("--objective", choices=OBJECTIVES, help="what to have the least of (default: time, or as the costs say)")
    add(
        "--direct-exchange",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let devices send each other what they lack, beside collectives (the default)",
    )
    add("--costs", metavar="FILE", help="latencies and bandwidths, as TOML or JSON (default: those of the planner)")
    add("--simulate", action="store_true", help="carry the plan out on NumPy arrays and say whether it delivers")
    add(
        "--format",
        choices=FORMATS,
        default="auto",
        help="text, rich for text in colour, a picture (svg), both (html), or data (json) "
        "(default: by the suffix of the output, else text, in colour on a terminal)",
    )
    add("-o", "--output", default="-", metavar="FILE", help="where to write; - is standard output (the default)")
    add("--colour", choices=("auto", "always", "never"), default="auto", help="whether text is in colour")
    add("--width", type=_width, metavar="COLUMNS", help="how wide text is (default: the terminal, else 120)")
    add("--version", action="version", version=f"mlir-shard {version}")
    return parser


def _width(text: str) -> int:
    if not text.isdecimal() or not LEAST_WIDTH <= int(text) < 10_000:
        raise argparse.ArgumentTypeError(f"'{text}' is no width: {LEAST_WIDTH} columns or more")
    return int(text)
