# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of shard-run: read arrays, prepare the run, run, report."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlir_shard.tools import crashes, modules, output
from mlir_shard.tools.command_line import complain
from mlir_shard.tools.run import arguments as run_arguments
from mlir_shard.tools.run import arrays as run_arrays
from mlir_shard.tools.run import report as run_report
from mlir_shard.tools.run.arguments import RunArguments

if TYPE_CHECKING:
    from mlir_shard.explain.budget import Budget
    from mlir_shard.explain.memory import Engine, PeakMemory
    from mlir_shard.runtime.backends import Backend
    from mlir_shard.runtime.compile import Compiled, Pipelines
    from mlir_shard.runtime.execution import Result
    from mlir_shard.runtime.program import RankTimes
    from mlir_shard.tools.source import Console
    from mlir_shard.transforms.communication.communication_report import CommunicationReport


def of_module(module: Any) -> CommunicationReport:
    """Returns the report of a local module; raises RunError if its collectives cannot be read."""
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.runtime.error import RunError
    from mlir_shard.transforms.communication.shard_communication_report import communication_report

    try:
        return communication_report(module.operation)
    except PassFailure as failure:
        raise RunError("the communication of the program is unknown", failure.diagnostics) from failure


def write_communication(path: str, report: CommunicationReport) -> None:
    """Writes a report as JSON to a `.json` file, else as a table; raises UsageError if the file cannot be written."""
    from mlir_shard.transforms.communication.shard_communication_report import write as write_to

    if path == "-":
        print(flush=True)
        write_to(report, sys.stdout, "table")
        return
    text = io.StringIO()
    write_to(report, text, "json" if path.endswith(".json") else "table")
    output.write(path, text.getvalue())


TOOL = "shard-run"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A compiled program and inputs that fit it."""

    arguments: RunArguments
    compiled: Compiled
    inputs: list[Any]
    backend: Backend
    progress: run_report.Progress
    result_names: tuple[str, ...] = ()
    expected: list[Any] | None = None
    communication: CommunicationReport | None = None
    memory: PeakMemory | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The results and times of a program that has run."""

    prepared: Prepared
    results: list[Result]
    times: tuple[RankTimes, ...]


def prepare(arguments: RunArguments, console: Console, progress: run_report.Progress) -> Prepared:
    """Reads and compiles the program; raises UsageError, RunError or `modules.Reported` for invalid input."""
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.runtime import names
    from mlir_shard.runtime.backends import backend
    from mlir_shard.runtime.compile import Pipelines, compile_module
    from mlir_shard.runtime.execution import check_inputs, random_inputs
    from mlir_shard.runtime.interface import entry_function
    from mlir_shard.tools.certified import certificate_file

    crashes.report(TOOL)
    if arguments.output is not None:
        run_arrays.check_output(arguments.output)
    for option in ("communication_report", "memory_report"):
        path = getattr(arguments, option)
        if path is not None:
            output.check_report(path, f"--{option.replace('_', '-')}")
    given = run_arrays.read(arguments.inputs)
    expected = run_arrays.read(arguments.expect)
    chosen = backend(
        arguments.engine,
        timeout=arguments.timeout,
        mpi=arguments.mpi,
        cpu=arguments.cpu,
        platform=arguments.platform,
        collectives=arguments.collectives,
        observe=progress.observe,
        repeat=arguments.repeat,
        threads=arguments.threads,
        cache=arguments.cache,
        remarks_above=arguments.remarks_above,
        verify_repetition=arguments.verify_repetition,
    )
    progress.say("reading")
    modules.load_passes(arguments.load, console)
    module = modules.read_module(arguments.input, create_context(), console)
    if arguments.shape:
        _make_static(module, arguments)
    function = entry_function(module, arguments.function)
    if arguments.inputs:
        run_arrays.check_inputs(function, given)
    if arguments.expect:
        run_arrays.check_expected(function, expected)
    if arguments.explain:
        _explain(module, arguments, console)
    progress.say("sharding")
    result_names = names.result_names(function)

    reports: list[CommunicationReport] = []
    is_reported = arguments.communication_report is not None or arguments.timing == run_arguments.JSON

    memory: list[PeakMemory] = []
    predicts_memory = arguments.memory_report is not None or arguments.timing == run_arguments.JSON

    def watch(stage: str, shown: Any) -> None:
        if stage == run_arguments.LOCAL and is_reported:
            reports.append(of_module(shown))
        if stage == run_arguments.LOCAL and predicts_memory:
            memory.extend(_memory_of(shown, arguments))
        if stage in arguments.show:
            _show(stage, shown)
        if stage == run_arguments.LOCAL and arguments.budget is not None:
            _check_budget(shown, arguments.budget)

    pipelines = Pipelines(*arguments.pipeline) if arguments.pipeline else chosen.pipelines
    with certificate_file() as certificate:
        if arguments.certify:
            pipelines = _certified(pipelines, certificate)

        def watch_certified(stage: str, shown: Any) -> None:
            if stage == run_arguments.LOCAL and arguments.certify:
                _check(module, shown, certificate)
            watch(stage, shown)

        compiled = compile_module(
            module,
            arguments.ranks,
            function=arguments.function,
            pipelines=pipelines,
            with_unsharded=arguments.verify and not arguments.expect,
            watch=watch_certified,
            lower=chosen.lower,
            trust_native=arguments.trust_native,
        )
    if arguments.output is not None:
        run_arrays.check_count(arguments.output, len(compiled.sharded.results))
    if len(result_names) != len(compiled.sharded.results):
        # Tokens are results that are not returned.
        result_names = ()
    arrays = [one.array for one in given]
    inputs = arrays if arguments.inputs else random_inputs(compiled.sharded, arguments.seed)
    check_inputs(compiled.sharded, inputs)
    wanted = [one.array for one in expected] if arguments.expect else None
    return Prepared(
        arguments,
        compiled,
        inputs,
        chosen,
        progress,
        result_names,
        wanted,
        reports[0] if reports else None,
        memory[0] if memory else None,
    )


def run(prepared: Prepared) -> Ended:
    """Runs the sharded program; raises RunError if it fails."""
    from mlir_shard.runtime.error import RunError
    from mlir_shard.runtime.execution import run_program

    prepared.progress.say(f"running @{prepared.compiled.sharded.entry}")
    try:
        results = run_program(prepared.compiled.sharded, prepared.inputs, prepared.backend.engine)
    except RunError as error:
        if prepared.arguments.inputs or "error: the assertion " not in error.message:
            raise
        advice = "the arguments are random: --inputs and --seed select others"
        raise RunError(f"{error.message}\n  {advice}", error.diagnostics) from error
    return Ended(prepared, results, prepared.progress.times)


def report(ended: Ended) -> int:
    """Compares, writes and prints the results; returns the exit status."""
    from mlir_shard.tools.run import comparison as run_comparison
    from mlir_shard.tools.run import report as run_report
    from mlir_shard.tools.run import times as run_times

    prepared, arguments = ended.prepared, ended.prepared.arguments
    with run_report.shown(not arguments.show) as progress:
        comparisons = run_comparison.comparisons(prepared, ended.results, progress)
    if arguments.output is not None:
        run_arrays.write(arguments.output, [result.array for result in ended.results])
    device = "device" if arguments.engine == run_arguments.PJRT else "rank"
    compared_with = "nothing" if comparisons is None else "expected results" if arguments.expect else ""
    print(run_report.title(prepared.compiled.sharded, compared_with, device))
    print(run_report.table(ended.results, comparisons, prepared.result_names), flush=True)
    predicted = prepared.compiled.sharded.peak_bytes
    if arguments.timing == run_arguments.JSON:
        print(f"\n{run_times.as_json(ended.times, prepared.communication, predicted, prepared.memory)}", flush=True)
    elif arguments.timing == run_arguments.TABLE or (arguments.timing is None and sys.stdout.isatty()):
        print(f"\n{run_times.table(ended.times, predicted)}", flush=True)
    if prepared.communication is not None and arguments.communication_report is not None:
        write_communication(arguments.communication_report, prepared.communication)
    if prepared.memory is not None and arguments.memory_report is not None:
        _write_memory(arguments.memory_report, prepared.memory)
    for result in ended.results:
        if result.disagreement:
            complain(TOOL, result.disagreement)
    for number, comparison in enumerate(comparisons or ()):
        if comparison.worst is not None:
            name = f"result {run_report.name_of(number, prepared.result_names)}"
            complain(TOOL, comparison.described(name, ended.results[number].array.size))
    return 0 if run_report.all_agree(ended.results, comparisons) else 1


def _write_memory(path: str, memory: PeakMemory) -> None:
    from mlir_shard.explain.memory_report import report_text

    text = report_text(memory, is_json=path.endswith(".json"))
    output.write(path, f"\n{text}" if path == "-" else text)


def _memory_of(local: Any, arguments: RunArguments) -> list[PeakMemory]:
    """Returns the predicted memory of the local program; empty if it is unknown and no report was requested."""
    from mlir_shard.explain.memory import peak_memory
    from mlir_shard.passes import diagnostic
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.runtime.error import RunError

    engine: Engine = "pjrt" if arguments.engine == run_arguments.PJRT else "mpi"
    try:
        return [peak_memory(local, arguments.function, engine=engine)]
    except PassFailure as failure:
        if arguments.memory_report is None:
            return []
        where = failure.where if failure.where is not None else local
        found = [diagnostic.at("error", failure.message, where.operation.location)]
        raise RunError("cannot predict the memory usage of the program", found) from failure


def _explain(module: Any, arguments: RunArguments, console: Console) -> None:
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.runtime.error import RunError
    from mlir_shard.tools.explained import values_text

    collectives = arguments.collectives or ("stablehlo" if arguments.engine == run_arguments.PJRT else "shard")
    try:
        print(f"{values_text(module, arguments.explain, console.texts(), collectives)}\n", flush=True)
    except PassFailure as failure:
        raise RunError("the program cannot be explained", failure.diagnostics) from failure


def _certified(pipelines: Pipelines, path: str) -> Pipelines:
    """Returns the pipelines with an option that writes the certificate to a file."""
    from dataclasses import replace

    name, _, options = pipelines.spmdize.partition("{")
    return replace(pipelines, spmdize=f"{name}{{certificate={path} {options or '}'}")


def _check(whole: Any, local: Any, certificate: str) -> None:
    """Raises RunError if the local program is not proved."""
    from mlir_shard.runtime.error import RunError
    from mlir_shard.tools.certified import check_file, diagnostics

    verdict = check_file(whole, local, certificate)
    if not verdict.is_proved:
        raise RunError("the local program is not proved", diagnostics(verdict))


def _check_budget(local: Any, budget: Budget) -> None:
    from mlir_shard.explain.budget import exceeded
    from mlir_shard.runtime.error import RunError

    found = exceeded(local, budget)
    if found:
        raise RunError("the program exceeds its budget", found)


def _make_static(module: Any, arguments: RunArguments) -> None:
    from mlir_shard.passes.registry import PassFailure
    from mlir_shard.runtime.error import RunError
    from mlir_shard.runtime.static_shapes import make_static

    try:
        make_static(module, dict(arguments.shape), arguments.function)
    except PassFailure as failure:
        raise RunError("the program cannot be made static", failure.diagnostics) from failure


def _show(stage: str, module: Any) -> None:
    from mlir_shard import asm

    title = {"propagated": "The program with all shardings", "local": "The local program"}[stage]
    print(f"// {title}\n{asm.print_operation(module.operation).rstrip()}\n", flush=True)
