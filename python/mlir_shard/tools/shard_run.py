# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-run: shards a program, runs it on MPI ranks and compares it with the program without sharding."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from mlir_shard import __version__
from mlir_shard.tools import run_arguments
from mlir_shard.tools.command_line import UsageError
from mlir_shard.tools.exit_status import complain, exit_status
from mlir_shard.tools.run_arguments import RunArguments

if TYPE_CHECKING:
    from mlir_shard.tools.diagnostics import Console

TOOL = "shard-run"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-run; returns its exit status: 0, 1 for a mismatch or any error, 130 where it was interrupted."""
    return exit_status(TOOL, lambda: _drive(run_arguments.parse(sys.argv[1:] if argv is None else argv, __version__)))


def _drive(arguments: RunArguments) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Ending in an orderly way ends the ranks too; what nohup has set stays.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    if arguments.save is not None:
        run_arguments.check_save(arguments.save)
    given = run_arguments.read_arrays(arguments.inputs) if arguments.inputs else None

    from mlir_shard.runtime.error import RunError
    from mlir_shard.tools.diagnostics import Console

    console = Console(sys.stderr)
    try:
        module = _parse(arguments, console)
        return 1 if module is None else _run(module, arguments, given)
    except RunError as error:
        for one in error.diagnostics:
            console.report(one)
        return complain(TOOL, error.message)


def _end(number: int, _: Any) -> NoReturn:
    sys.exit(128 + number)


def _parse(arguments: RunArguments, console: Console) -> Any | None:
    """The module to run; None after the diagnostics where the text is none."""
    from mlir_shard import asm
    from mlir_shard.dialects import verification
    from mlir_shard.dialects.context import create_context
    from mlir_shard.passes import diagnostic, plugins, registry
    from mlir_shard.tools import source

    def report(one: Any) -> bool:
        console.report(diagnostic.from_host(one))
        return True

    try:
        registry.search("mlir_shard.transforms")
        for warning in plugins.load_installed():
            console.report(warning)
        for path in arguments.load:
            plugins.load_file(path)
        read = source.read(arguments.input)
        console.add(read)
        context = create_context()
        with diagnostic.handled(context, report):
            module = asm.parse_module(read.text, context, read.name)
            return module if verification.verify(module.operation) else None
    except asm.ParseError as error:
        for one in error.diagnostics:
            report(one)
        return None
    except source.SourceError as error:
        raise UsageError(str(error)) from None
    except plugins.PluginError as error:
        console.report(error.diagnostic)
        return None


def _run(module: Any, arguments: RunArguments, given: list[Any] | None) -> int:
    from mlir_shard.runtime import verify
    from mlir_shard.runtime.compile import DEFAULT_PIPELINES, Pipelines, compile_module
    from mlir_shard.runtime.execution import check_inputs, random_inputs, run_program
    from mlir_shard.runtime.mpi import MpiEngine, SingleProcessEngine
    from mlir_shard.tools import run_report

    compiled = compile_module(
        module,
        arguments.ranks,
        function=arguments.function,
        pipelines=Pipelines(*arguments.pipeline) if arguments.pipeline else DEFAULT_PIPELINES,
        with_unsharded=arguments.verify,
        watch=lambda stage, shown: _show(stage, shown) if stage in arguments.show else None,
    )
    inputs = random_inputs(compiled.sharded, arguments.seed) if given is None else given
    check_inputs(compiled.sharded, inputs)
    results = run_program(compiled.sharded, inputs, MpiEngine(arguments.timeout))
    comparisons = None
    if compiled.unsharded:
        expected = run_program(compiled.unsharded, inputs, SingleProcessEngine(arguments.timeout))
        comparisons = [
            verify.compare(result.array, right.array, result.port.spec.element_type)
            for result, right in zip(results, expected, strict=True)
        ]
    if arguments.save is not None:
        run_arguments.save(arguments.save, [result.array for result in results])
    print(run_report.title(compiled.sharded, comparisons is not None))
    print(run_report.table(results, comparisons), flush=True)
    for result in results:
        if result.disagreement:
            complain(TOOL, result.disagreement)
    return 0 if run_report.all_agree(results, comparisons) else 1


def _show(stage: str, module: Any) -> None:
    from mlir_shard import asm

    title = {"propagated": "The program with all shardings", "local": "The program of one device"}[stage]
    print(f"// {title}\n{asm.print_operation(module.operation).rstrip()}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
