# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run's command line, and the arrays that it names."""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from mlir_shard.passes.suggestions import did_you_mean
from mlir_shard.tools import output
from mlir_shard.tools.command_line import UsageError

STAGES = ("propagated", "local")

_DESCRIPTION = """\
Shards a program by its annotations and runs it on MPI ranks of this machine, then compares what it computes with the
program without sharding. The exit status is 0 where all results agree, 1 where one does not or there was an error."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunArguments:
    """What the command line asks for; `-` is standard input, and None what follows from the program."""

    input: str
    ranks: int | None
    function: str
    inputs: tuple[str, ...]
    seed: int
    save: str | None
    verify: bool
    show: tuple[str, ...]
    pipeline: tuple[str, str] | None
    load: tuple[str, ...]
    timeout: float | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(argv: Sequence[str], version: str) -> RunArguments:
    """Reads a command line; UsageError where it cannot be carried out. Prints and exits for --help and --version."""
    given = _parser(version).parse_args(argv)
    if given.save is not None and not given.save.endswith(".npz"):
        raise UsageError(f"--save={given.save}: the results are saved as a .npz file")
    return RunArguments(
        input=given.file,
        ranks=given.ranks,
        function=given.function.removeprefix("@"),
        inputs=tuple(given.inputs),
        seed=given.seed,
        save=given.save,
        verify=given.verify,
        show=given.show,
        pipeline=given.pipeline,
        load=tuple(given.load),
        timeout=given.timeout,
    )


def _parser(version: str) -> _Parser:
    parser = _Parser(prog="shard-run", description=_DESCRIPTION, allow_abbrev=False)
    add = parser.add_argument
    add("file", metavar="FILE", help="a module annotated for sdy or with upstream's shard; - is standard input")
    add("-n", "--ranks", type=_count, metavar="N", help="the number of ranks (default: the devices of the mesh)")
    add("--function", default="main", metavar="NAME", help="the function to run (default: main)")
    add(
        "--inputs",
        nargs="+",
        default=[],
        metavar="ARRAYS",
        help=".npy files, one for each argument, or .npz files with several in order (default: random arrays)",
    )
    add("--seed", type=_seed, default=0, metavar="SEED", help="the seed of the random inputs (default: 0)")
    add("--save", metavar="FILE.npz", help="write the results there, as result0, result1, ...")
    add(
        "--verify",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with the program without sharding (the default)",
    )
    add(
        "--show",
        type=_stages,
        default=(),
        metavar="STAGES",
        help="print the module with all shardings (propagated), that of one device (local), or both, between commas",
    )
    add(
        "--pipeline",
        type=_pipelines,
        metavar="PROPAGATE;SPMDIZE",
        help="the passes that decide all shardings, and those that then make the module local "
        "(default: shard-propagate;shard-spmdize)",
    )
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes from a Python file")
    add("--timeout", type=_seconds, metavar="SECONDS", help="stop a run that takes longer")
    add("--version", action="version", version=f"mlir-shard {version}")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of ranks: 1 or more")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no seed: a whole number, not negative")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no time: a number of seconds")
    return seconds


def _stages(text: str) -> tuple[str, ...]:
    stages = tuple(stage.strip() for stage in text.split(","))
    for stage in stages:
        if stage not in STAGES:
            hint = did_you_mean(stage, STAGES) or f": they are {' and '.join(STAGES)}"
            raise argparse.ArgumentTypeError(f"'{stage}' is no stage to show{hint}")
    return stages


def _pipelines(text: str) -> tuple[str, str]:
    propagate, separator, spmdize = text.partition(";")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}' is one pipeline: two are needed, with a semicolon between")
    return propagate.strip(), spmdize.strip()


def read_arrays(paths: Sequence[str]) -> list[Any]:
    """The arrays in .npy and .npz files, in order; UsageError for a file that holds none."""
    return [array for path in paths for array in _read(path)]


def _read(path: str) -> list[Any]:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            return [loaded[name] for name in loaded.files]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it holds no array of NumPy's"
        raise UsageError(f"cannot read the input '{path}': {reason}") from None


def check_save(path: str) -> None:
    """UsageError where results could not be written there, before anything is run."""
    try:
        output.check(path)
    except output.OutputError as error:
        raise UsageError(str(error)) from None


def save(path: str, results: Sequence[Any]) -> None:
    """Writes the results to a .npz file, whole or not at all; UsageError where that fails."""
    import numpy as np

    packed = io.BytesIO()
    np.savez(packed, **{f"result{index}": array for index, array in enumerate(results)})
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            temporary.write_bytes(packed.getbuffer())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot open output file '{path}': {error.strerror}") from None
