# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""shard-opt: mlir-opt with sharding, whose pipelines may contain both passes in Python and passes of the host."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mlir_shard.garbage import fewer_collections
from mlir_shard.tools.command_line import Arguments, UsageError, complain, exit_status, parse

if TYPE_CHECKING:
    from mlir_shard.passes.resolution import Nest, Step
    from mlir_shard.tools.source import Console

TOOL = "shard-opt"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs shard-opt; returns its exit status: 0, 1 for any error, 130 if interrupted."""
    if argv is not None:
        return exit_status(TOOL, lambda: _drive(parse(argv)))
    # The objects that imports create live until the process ends, when a search for cycles in them would be useless.
    with fewer_collections():
        status = exit_status(TOOL, lambda: _drive(parse(sys.argv[1:])))
        gc.freeze()
    return status


def _drive(arguments: Arguments) -> int:
    if arguments.version:
        from mlir_shard import __version__

        print(f"mlir-shard {__version__}")
        return 0
    from mlir_shard.passes import plugins
    from mlir_shard.tools.source import Console

    console = Console(sys.stderr)
    try:
        _load_passes(arguments, console)
    except plugins.PluginError as error:
        if error.diagnostic.position is None:
            return complain(TOOL, error.diagnostic.message)
        console.report(error.diagnostic)
        return 1
    if arguments.help is not None or arguments.list_passes:
        from mlir_shard.tools import help_text

        sys.stdout.write(help_text.passes_text() if arguments.help is None else help_text.text_on(arguments.help))
        sys.stdout.flush()
        return 0
    if arguments.print_completion is not None:
        from mlir_shard.tools import completion

        sys.stdout.write(completion.script(TOOL, completion.of_shard_opt()))
        return 0
    if arguments.show_dialects:
        print(f"Available Dialects: {','.join(_dialects())}", flush=True)
        return 0
    return _optimize(arguments, console)


def _load_passes(arguments: Arguments, console: Console) -> None:
    from mlir_shard.passes import plugins, registry

    registry.search("mlir_shard.transforms")
    for warning in plugins.load_installed():
        console.report(warning)
    for path in arguments.load:
        plugins.load_file(path)
    _check_plugin_names()


def _check_plugin_names() -> None:
    """Raises PluginError if a plugin's pass or pipeline has the name of an option, which its flag would set."""
    from mlir_shard.passes import registry
    from mlir_shard.passes.diagnostic import of_declaration
    from mlir_shard.passes.plugins import PluginError
    from mlir_shard.tools.command_line import OPTIONS

    passes = registry.registered(besides=registry.OWN_PACKAGE)
    pipelines = registry.registered_pipelines(besides=registry.OWN_PACKAGE)
    for name, one in (*passes.items(), *((name, known.build) for name, known in pipelines.items())):
        if name in OPTIONS:
            reason = f"'{name}' is an option of {TOOL} and cannot be the name of a pass or pipeline"
            raise PluginError(of_declaration(reason, one))


def _dialects() -> tuple[str, ...]:
    from mlir_shard.asm.attributes import SYNTAXES
    from mlir_shard.dialects.contexts import create_context
    from mlir_shard.passes import host_listing

    return tuple(sorted({*host_listing.dialects(create_context()), *SYNTAXES}))


def _optimize(arguments: Arguments, console: Console) -> int:
    from mlir_shard.passes.instrumentation import Timing
    from mlir_shard.tools import crashes, output, source
    from mlir_shard.tools.session import Session

    crashes.report(TOOL)
    output.check_form(arguments.output, "a module is written as text, or with --emit-bytecode as bytecode")
    output.check(arguments.output)
    if arguments.memory_report is not None:
        output.check_report(arguments.memory_report, "--memory-report")
    # An invalid pipeline is reported before standard input is read.
    opened = None if arguments.input == "-" else source.read(arguments.input)
    timing = Timing()
    with timing.phase("Pipeline"):
        pipeline = _pipeline(arguments, console)
    if pipeline is None:
        return 1
    if arguments.dump_pass_pipeline:
        print(f"Pass Manager with {len(pipeline.steps)} passes:\n{pipeline}", file=sys.stderr, flush=True)
    try:
        if arguments.emit_bytecode and arguments.output == "-" and sys.stdout.isatty():
            raise UsageError("cannot write bytecode to a terminal: specify a file with -o")
        whole = opened or source.read(arguments.input)
        console.add(whole)
        marker = arguments.split_input_file
        parts = source.split(whole, marker) if marker is not None else (whole,)
        with timing.phase("Context"):
            session = Session(arguments, pipeline, console, timing)
        written = [session.process(part) for part in parts]
        succeeded = session.succeeded
        if arguments.output == "-" or succeeded:
            with timing.phase("Output"):
                marker_between = f"\n{arguments.output_split_marker}\n\n".encode()
                encoded = [one.encode() if isinstance(one, str) else one for one in written]
                output.write(arguments.output, marker_between.join(encoded))
    finally:
        if arguments.timing:
            print(timing.report(), file=sys.stderr, flush=True)
    return 0 if succeeded else 1


def _pipeline(arguments: Arguments, console: Console) -> Nest | None:
    """Returns the passes of the command line; None, after a diagnostic, if `--pass-pipeline` is invalid."""
    from mlir_shard.passes import resolution
    from mlir_shard.passes.diagnostic import Position, error
    from mlir_shard.passes.resolution import PipelineError
    from mlir_shard.tools.source import Source

    try:
        if arguments.pass_pipeline is not None:
            nest = resolution.from_text(arguments.pass_pipeline)
            resolution.check_runs_on(nest, resolution.MODULE, arguments.pass_pipeline)
            return nest
        return resolution.from_steps(_flagged_steps(arguments))
    except PipelineError as wrong:
        if not wrong.text:
            raise UsageError(wrong.message) from None
        data = wrong.text.encode()
        before = wrong.text[: wrong.offset].encode()
        console.add(Source("--pass-pipeline", data))
        position = Position("--pass-pipeline", before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        console.report(error(wrong.message, position))
        return None


def _flagged_steps(arguments: Arguments) -> Iterator[Step]:
    from mlir_shard.passes import resolution
    from mlir_shard.passes.options import OptionError, did_you_mean, without_delimiters
    from mlir_shard.tools.command_line import OPTIONS

    for flag in arguments.passes:
        if not resolution.is_known(flag.name):
            hint = did_you_mean(flag.name, (*OPTIONS, *resolution.known_names()), prefix="--")
            raise UsageError(f"unknown option or pass '{flag.text}'{hint or '; --help lists both'}")
        try:
            yield from resolution.make(flag.name, without_delimiters(flag.options))
        except OptionError as error:
            raise UsageError(f"'{flag.text}': {error.message}") from None


if __name__ == "__main__":
    sys.exit(main())
