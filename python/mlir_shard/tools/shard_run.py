# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run: shards a program, runs it on MPI ranks or devices of PJRT and compares it with the unsharded program."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from mlir_shard.runtime.launch.launcher_place import Place, place
from mlir_shard.tools import modules
from mlir_shard.tools.command_line import UsageError, complain, exit_status
from mlir_shard.tools.run import arguments as run_arguments
from mlir_shard.tools.run import report as run_report
from mlir_shard.tools.run import steps as run_steps
from mlir_shard.tools.run.arguments import RunArguments
from mlir_shard.tools.run.steps import TOOL

if TYPE_CHECKING:
    from mlir_shard.runtime.launch.mpi_library import MpiProcess


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-run; returns its exit status: 0, 1 for a mismatch or any error, 130 for an interrupt."""
    given, found = sys.argv[1:] if argv is None else argv, place()
    if found is None or found.size == 1:
        return exit_status(TOOL, lambda: _drive(run_arguments.parse(given)))
    return exit_status(TOOL, lambda: _drive_launched(_parse_once(given, found)))


def _drive(arguments: RunArguments) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An orderly exit ends the ranks too; the handler that nohup sets is kept.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    return _status(lambda: run_steps.report(_run(arguments)))


def _run(arguments: RunArguments) -> run_steps.Ended:
    from mlir_shard.tools.source import Console

    with run_report.shown(not arguments.show) as progress:
        return run_steps.run(run_steps.prepare(arguments, Console(sys.stderr), progress))


def _parse_once(given: Sequence[str], found: Place) -> RunArguments:
    """Parses the command line, which is the same on all ranks; only the first rank reports errors in it."""
    try:
        with contextlib.redirect_stdout(sys.stdout if found.rank == 0 else io.StringIO()):
            arguments = run_arguments.parse(given)
        if arguments.engine != run_arguments.MPI:
            raise UsageError(
                f"--engine={arguments.engine} runs all devices in one process: start shard-run without a launcher"
            )
        return arguments
    except UsageError:
        if found.rank == 0:
            raise
        sys.exit(1)


def _drive_launched(arguments: RunArguments) -> int:
    """Runs one of the ranks that a launcher has started; returns the exit status, which is the same on all."""
    from mlir_shard.runtime.launch import launched

    joined: list[MpiProcess] = []
    try:
        status = _status(lambda: _keep(joined, launched.join(arguments.mpi)), passed_on=launched.OtherRankFailed)
    except launched.OtherRankFailed:
        return 1
    if not joined:
        return status
    (process,) = joined
    prepared: list[run_steps.Prepared] = []
    if _step(process, lambda: _keep(prepared, _prepare_quietly(arguments))):
        return 1
    ended: list[run_steps.Ended] = []
    if _step(process, lambda: _keep(ended, run_steps.run(prepared[0]))):
        return 1
    return _step(process, lambda: run_steps.report(ended[0]) if process.rank == 0 else 0)


def _prepare_quietly(arguments: RunArguments) -> run_steps.Prepared:
    from mlir_shard.tools.source import Console

    return run_steps.prepare(arguments, Console(sys.stderr), run_report.Progress(None))


def _step(process: MpiProcess, drive: Callable[[], int]) -> int:
    """Returns 0 if the step succeeded on all ranks, else 1; the first rank that failed reports the error."""
    from mlir_shard.runtime.launch.launched import OtherRankFailed

    written, said = io.StringIO(), io.StringIO()
    others: list[OtherRankFailed] = []

    def guarded() -> int:
        try:
            return _status(drive, passed_on=OtherRankFailed)
        except OtherRankFailed as error:
            return _keep(others, error)

    # All exceptions are caught, because the other ranks need the status of this one.
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(said):
        status = exit_status(TOOL, guarded)
    failing = process.first(status != 0)
    if process.rank == (failing or 0) and not others:
        print(written.getvalue(), end="", flush=True)
        print(said.getvalue(), end="", file=sys.stderr, flush=True)
    return 0 if failing is None else 1


def _status(drive: Callable[[], int], passed_on: type[BaseException] | tuple[type[BaseException], ...] = ()) -> int:
    """Returns the result of `drive`, or 1 after reporting its error; raises errors that are `passed_on`."""
    from mlir_shard.runtime.error import RunError
    from mlir_shard.tools.source import Console

    try:
        return drive()
    except passed_on:
        raise
    except modules.Reported:
        return 1
    except UsageError as error:
        return complain(TOOL, str(error))
    except RunError as error:
        console = Console(sys.stderr)
        for one in error.diagnostics:
            console.report(one)
        return complain(TOOL, error.message)


def _keep(kept: list[Any], value: Any) -> int:
    kept.append(value)
    return 0


def _end(number: int, _: Any) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
