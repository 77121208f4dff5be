# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run's command line."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlir_shard.tools.argument_parser import ArgumentParser, OneOf, number
from mlir_shard.tools.command_line import UsageError

if TYPE_CHECKING:
    from mlir_shard.explain.budget import Budget

PROPAGATED, LOCAL = "propagated", "local"
STAGES = (PROPAGATED, LOCAL)
MPI, PJRT = "mpi", "pjrt"
ENGINES = (MPI, PJRT)
SHARD, STABLEHLO = "shard", "stablehlo"
COLLECTIVES = (SHARD, STABLEHLO)
TABLE, JSON, NO_TIMES = "table", "json", "none"
TIMINGS = (TABLE, JSON, NO_TIMES)

_DESCRIPTION = """\
Shards a program by its annotations, runs it on MPI ranks or PJRT devices, and compares its results with those of the
unsharded program. The exit status is 0 if all results agree, and 1 if one does not or an error occurs. Under mpirun or
srun, it runs as one of the ranks."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunArguments:
    """The arguments of the command line; `-` is standard input, and a None is determined by the program."""

    input: str
    ranks: int | None
    engine: str
    mpi: str
    cpu: str
    platform: str
    collectives: str | None
    function: str
    shape: list[tuple[int | str, tuple[int, ...]]]
    inputs: list[str]
    seed: int
    output: str | None
    verify: bool
    certify: bool
    expect: list[str]
    rtol: float | None
    atol: float | None
    timing: str | None
    repeat: int
    threads: int
    cache: str | None
    show: tuple[str, ...]
    communication_report: str | None
    memory_report: str | None
    budget: Budget | None
    explain: list[str]
    remarks_above: str
    verify_repetition: bool
    pipeline: tuple[str, str] | None
    load: list[str]
    trust_native: bool
    timeout: float | None


def parse(argv: Sequence[str]) -> RunArguments:
    """Parses a command line; raises UsageError if it is invalid. Prints and exits for --help and --version."""
    given = vars(_parser().parse_args(argv))
    for option, engine in (("mpi", MPI), ("cpu", MPI), ("threads", MPI), ("cache", MPI), ("platform", PJRT)):
        if given[option] is not None and given["engine"] != engine:
            raise UsageError(f"--{option} requires --engine={engine}, but the engine is {given['engine']}")
    if given["collectives"] == SHARD and given["engine"] == PJRT:
        raise UsageError("--collectives=shard requires --engine=mpi: PJRT runs the collectives of StableHLO")
    for option in ("collectives", "remarks_above", "verify_repetition", "certify"):
        if given[option] and given["pipeline"] is not None:
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} is not allowed with --pipeline: set the option on a pass of the pipeline")
    for option in ("rtol", "atol"):
        if given[option] is not None and not given["verify"] and not given["expect"]:
            raise UsageError(f"--{option} is not allowed with --no-verify, which disables the comparison")
    defaults = {"mpi": "wheel", "cpu": "native", "platform": "cpu", "remarks_above": "", "threads": 1}
    return RunArguments(**given | {option: given[option] or default for option, default in defaults.items()})


def _parser() -> ArgumentParser:
    parser = ArgumentParser("shard-run", _DESCRIPTION)
    add = parser.add_argument
    add("input", metavar="FILE", help="a module annotated for sdy or with upstream's shard; - is standard input")
    add(
        "-n",
        "--ranks",
        type=number("is not a number of ranks: expected 1 or more", 1),
        metavar="N",
        help="the number of ranks (default: the devices of the mesh)",
    )
    add(
        "--engine",
        type=OneOf(ENGINES, "is not an engine"),
        default=MPI,
        metavar="ENGINE",
        help="the engine that runs the program: mpi, compiled by LLVM (the default), or pjrt, compiled by XLA "
        "(requires jax)",
    )
    add(
        "--mpi",
        metavar="MPI",
        help="the MPI: wheel, the one from PyPI; system, the one on the path; or the path of an mpiexec (default: "
        "wheel, or the MPI of the launcher that started shard-run)",
    )
    add(
        "--cpu",
        metavar="CPU",
        help="the target CPU of LLVM: native, this machine's CPU (the default), or x86-64, x86-64-v2, x86-64-v3 or "
        "x86-64-v4, for ranks on machines with different CPUs",
    )
    add(
        "--platform",
        metavar="NAME",
        help="the platform of PJRT; cpu has as many devices as the program needs (default: cpu)",
    )
    add(
        "--collectives",
        type=OneOf(COLLECTIVES, "is not a dialect of collectives"),
        metavar="DIALECT",
        help="the collectives of the local program: shard (the default for mpi) or stablehlo (for pjrt)",
    )
    add("--function", type=_symbol, default="main", metavar="NAME", help="the function to run (default: main)")
    add(
        "--shape",
        type=_shape_of,
        action="append",
        default=[],
        metavar="NAME=SIZES",
        help="make the program static: the shape of an argument by number or name, such as x=32x16, or the size of a "
        "dimension variable of jax.export, such as batch=32 (repeatable)",
    )
    add(
        "--inputs",
        nargs="+",
        default=[],
        metavar="ARRAYS",
        help=".npy files, one for each argument, or .npz files with several in order (default: random arrays)",
    )
    seed = number("is not a seed: expected a non-negative integer")
    add("--seed", type=seed, default=0, metavar="SEED", help="the seed of the random inputs (default: 0)")
    add(
        "-o",
        "--output",
        "--save",
        metavar="FILE",
        help="write the results to a .npz file, as result0, result1, ..., or a single result to a .npy file",
    )
    add(
        "--verify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with the program without sharding (the default)",
    )
    add(
        "--certify",
        action="store_true",
        help="prove the local program equivalent to the program, and run it only if the proof succeeds",
    )
    add(
        "--expect",
        nargs="+",
        default=[],
        metavar="ARRAYS",
        help="compare with these results instead: .npy files, one for each result, or .npz files with several in order",
    )
    add(
        "--rtol",
        type=_tolerance,
        metavar="R",
        help="the relative tolerance of floating-point results (default: by type)",
    )
    add(
        "--atol",
        type=_tolerance,
        metavar="A",
        help="the absolute tolerance of floating-point results, added to the relative one (default: by type)",
    )
    add(
        "--timing",
        type=OneOf(TIMINGS, "is not a format of times"),
        nargs="?",
        const=TABLE,
        metavar="FORM",
        help="print the times of each rank, as a table (the default on a terminal) or as json",
    )
    add("--no-timing", dest="timing", action="store_const", const=NO_TIMES, help="do not print times")
    add(
        "--repeat",
        type=number("is not a number of calls: expected 1 or more", 1),
        default=1,
        metavar="N",
        help="call the program N times to measure it (default: 1)",
    )
    add(
        "--threads",
        type=number("is not a number of threads: expected 1 or more", 1),
        metavar="N",
        help="compute matrix products and convolutions with N threads a rank (default: 1)",
    )
    add(
        "--show",
        type=_stages,
        default=(),
        metavar="STAGES",
        help="print the module with all shardings (propagated), the module of one device (local), or both, separated "
        "by a comma",
    )
    add(
        "--communication-report",
        metavar="FILE",
        help="write the communication of the local program: a table (- for standard output), or JSON to a .json file",
    )
    add(
        "--memory-report",
        metavar="FILE",
        help="write the predicted memory usage of the local program: a table (- for standard output), or JSON to a "
        ".json file",
    )
    add(
        "--explain",
        metavar="VALUE",
        action="append",
        default=[],
        help="explain the sharding of a value, see shard-explain (repeatable)",
    )
    add(
        "--budget",
        type=_budget,
        metavar="NAME=AMOUNT,...",
        help="do not run a local program that exceeds this budget: bytes=10MiB, memory=2GiB, time=2ms, "
        "collectives=20, or a comma-separated list",
    )
    add(
        "--remarks-above",
        type=_bytes,
        metavar="BYTES",
        help="remark on each op for which a device receives more bytes than this because its operands have to be "
        "gathered; none disables remarks (default: 1048576)",
    )
    add(
        "--verify-repetition",
        action="store_true",
        help="also plan each op separately, and fail if the plan differs from that of an isomorphic op",
    )
    add(
        "--pipeline",
        type=_pipelines,
        metavar="PROPAGATE;SPMDIZE",
        help="the passes that decide all shardings, and those that then make the module local "
        "(default for mpi: shard-propagate;shard-spmdize)",
    )
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes from a Python file")
    add(
        "--trust-native",
        action="store_true",
        help="run a module that contains native code: llvm ops, inline assembly, or calls of functions without a body",
    )
    add("--cache", metavar="DIR", help="cache compiled programs in this folder")
    add("--timeout", type=_seconds, metavar="SECONDS", help="stop a run that exceeds this time")
    return parser


def _symbol(text: str) -> str:
    return text.removeprefix("@")


def _bytes(text: str) -> str:
    if text != "none" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes: expected a non-negative integer or none")
    return text


def _budget(text: str) -> Budget:
    from mlir_shard.explain.budget import read_budget

    try:
        return read_budget(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time: expected a number of seconds")
    return seconds


def _shape_of(text: str) -> tuple[int | str, tuple[int, ...]]:
    key, _, sizes = text.rpartition("=")
    if not key or not all(size.isdecimal() for size in sizes.split("x")):
        raise argparse.ArgumentTypeError(f"'{text}' is not a shape: expected x=32x16 for an argument, or batch=32")
    return int(key) if key.isdecimal() else key, tuple(map(int, sizes.split("x")))


def _tolerance(text: str) -> float:
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not 0 <= tolerance < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a tolerance: expected a non-negative number")
    return tolerance


_stage = OneOf(STAGES, "is not a stage to show")


def _stages(text: str) -> tuple[str, ...]:
    return tuple(_stage(stage.strip()) for stage in text.split(","))


def _pipelines(text: str) -> tuple[str, str]:
    propagate, separator, spmdize = text.partition(";")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}' is a single pipeline: expected two, separated by a semicolon")
    return propagate.strip(), spmdize.strip()
