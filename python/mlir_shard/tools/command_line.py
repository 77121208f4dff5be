# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines of the tools: the driver's options, flags that are passes, exit statuses.

Every flag of shard-opt that is not an option of the driver is a pass, in the order of the flags. A tool ends with a
status and one line about an error, never with a traceback.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.tools import interrupts, standard_streams

if TYPE_CHECKING:
    from mlir_shard.explain.quantities import Limit

SHELLS = ("bash",)
"""The shells that can complete command lines."""
DEFAULT_SPLIT_MARKER = "// -----"


class UsageError(ValueError):
    """A command line that cannot be carried out."""


@dataclasses.dataclass(frozen=True, slots=True)
class PassFlag:
    """`--name=options` as given; options is empty without `=`."""

    name: str
    options: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class DriverOption:
    """One option of the driver, without its name.

    read: converts the text of the value to the field's value; raises UsageError or ValueError if the text is invalid.
    value: the name of the value in `--help`, empty for a switch; implied: the text of an omitted value, None if the
    value is required; repeats: whether values of several occurrences are joined.
    """

    help: str
    value: str = ""
    read: Callable[[str], Any] = str
    implied: str | None = None
    repeats: bool = False


def _read_switch(text: str) -> bool:
    values = {"": True, "true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise ValueError("expects true or false")
    return values[text.lower()]


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _read_path(text: str) -> tuple[str, ...]:
    return (text,)


def _read_count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expects a non-negative number")
    return int(text)


def _read_verification(text: str) -> str:
    if text not in ("all", "only-expected"):
        raise ValueError("expects all or only-expected")
    return text


def _read_budget(text: str) -> tuple[tuple[str, Limit], ...]:
    from mlir_shard.explain.budget import read_budget

    try:
        return tuple(read_budget(text).items())
    except ValueError as error:
        raise UsageError(f"--budget: {error}") from None


def _read_shell(text: str) -> str:
    if text not in SHELLS:
        raise ValueError(f"expects {' or '.join(SHELLS)}")
    return text


def _option(name: str, help: str, value: str, default: Any = None, **described: Any) -> Any:
    """Returns a field that the option `name` sets; `described` are fields of its `DriverOption`."""
    return dataclasses.field(default=default, metadata={name: DriverOption(help, value, **described)})


def _switch(name: str, help: str, default: bool = False) -> Any:
    return _option(name, help, "", default, read=_read_switch, implied="")


@dataclasses.dataclass(frozen=True, slots=True)
class Arguments:
    """The values of a command line; `-` is standard input or output."""

    output: str = _option("o", "write the output to this file, atomically", "FILE", "-")
    pass_pipeline: str | None = _option("pass-pipeline", "the pipeline to run, builtin.module(...)", "TEXT")
    load: tuple[str, ...] = _option(
        "load", "run a Python file that registers passes (repeatable)", "FILE", (), read=_read_path, repeats=True
    )
    split_input_file: str | None = _option(
        "split-input-file",
        "split the input at marker lines and process each part independently",
        "MARKER",
        implied=DEFAULT_SPLIT_MARKER,
    )
    emit_bytecode: bool = _switch("emit-bytecode", "write bytecode instead of text, locations included")
    output_split_marker: str = _option(
        "output-split-marker", "the marker line between parts of the output", "MARKER", DEFAULT_SPLIT_MARKER
    )
    verify_diagnostics: str | None = _option(
        "verify-diagnostics",
        "check diagnostics against the expected-* comments of the input; only-expected: allow others",
        "all|only-expected",
        read=_read_verification,
        implied="all",
    )
    verify_each: bool = _switch("verify-each", "verify after each pass (on; --verify-each=false turns it off)", True)
    allow_unregistered_dialect: bool = _switch("allow-unregistered-dialect", "accept operations of unknown dialects")
    print_ir_before: tuple[str, ...] = _option(
        "mlir-print-ir-before", "print the IR before these passes", "PASS,...", (), read=_read_names, repeats=True
    )
    print_ir_after: tuple[str, ...] = _option(
        "mlir-print-ir-after", "print the IR after these passes", "PASS,...", (), read=_read_names, repeats=True
    )
    print_ir_before_all: bool = _switch("mlir-print-ir-before-all", "print the IR before each pass")
    print_ir_after_all: bool = _switch("mlir-print-ir-after-all", "print the IR after each pass")
    print_ir_after_change: bool = _switch("mlir-print-ir-after-change", "print the IR after a pass only if it changed")
    print_ir_after_failure: bool = _switch("mlir-print-ir-after-failure", "print the IR after a pass that failed")
    print_ir_module_scope: bool = _switch(
        "mlir-print-ir-module-scope", "print the entire module, not only the operation of the pass"
    )
    print_debuginfo: bool = _switch("mlir-print-debuginfo", "print locations")
    pretty_debuginfo: bool = _switch("mlir-pretty-debuginfo", "print locations in a human-readable form")
    print_op_generic: bool = _switch("mlir-print-op-generic", "print operations in generic form")
    print_local_scope: bool = _switch(
        "mlir-print-local-scope", "print attributes, types and locations inline, without aliases"
    )
    elide_elementsattrs_if_larger: int | None = _option(
        "mlir-elide-elementsattrs-if-larger", "elide constants with more elements than this", "N", read=_read_count
    )
    budget: tuple[tuple[str, Limit], ...] = _option(
        "budget",
        "fail if the local program exceeds this budget: bytes=10MiB, memory=2GiB, time=2ms, collectives=20",
        "NAME=AMOUNT,...",
        (),
        read=_read_budget,
        repeats=True,
    )
    memory_report: str | None = _option(
        "memory-report",
        "write the memory usage of the local program: a table (- for standard error), or JSON to a .json file",
        "FILE",
    )
    explain: tuple[str, ...] = _option(
        "explain",
        "explain on standard error the sharding of a value of the input under spmd-pipeline (repeatable)",
        "VALUE",
        (),
        read=_read_path,
        repeats=True,
    )
    disable_threading: bool = _switch("mlir-disable-threading", "no effect: passes always run on one thread")
    timing: bool = _switch("mlir-timing", "print the execution time of each pass")
    dump_pass_pipeline: bool = _switch("dump-pass-pipeline", "print the pipeline that is run")
    show_dialects: bool = _switch("show-dialects", "print the dialects and exit")
    list_passes: bool = _switch("list-passes", "print the passes with their summaries and exit")
    help: tuple[str, ...] | None = _option(
        "help",
        "print this help and exit; with names, describe these passes, pipelines and options",
        "PASS,...",
        read=_read_names,
        implied="",
        repeats=True,
    )
    print_completion: str | None = _option(
        "print-completion",
        "print a script that completes the command line in this shell, and exit",
        "|".join(SHELLS),
        read=_read_shell,
    )
    version: bool = _switch("version", "print the version and exit")
    input: str = "-"
    passes: tuple[PassFlag, ...] = ()


_FIELDS: Mapping[str, tuple[str, DriverOption]] = {
    name: (field.name, option) for field in dataclasses.fields(Arguments) for name, option in field.metadata.items()
}
OPTIONS: Mapping[str, DriverOption] = {name: option for name, (_, option) in _FIELDS.items()}
_PASS_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ALIASES: Mapping[str, str] = {"h": "help"}


def parse(argv: Sequence[str]) -> Arguments:
    """Reads the command line; flags that are not options of the driver are passes, whatever their names.

    Raises:
        UsageError: a value that is missing, wrong or given twice, or a second input file.
    """
    values: dict[str, Any] = {}
    passes: list[PassFlag] = []
    inputs: list[str] = []
    remaining = list(argv)
    while remaining:
        argument = remaining.pop(0)
        if argument == "--":
            continue
        if argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        name = _ALIASES.get(name, name)
        chosen = OPTIONS.get(name)
        if chosen is None:
            passes.append(PassFlag(name, value, argument))
            continue
        if not equals:
            if chosen.implied is not None:
                value = chosen.implied
            elif remaining:
                value = remaining.pop(0)
            else:
                raise UsageError(f"'{argument}' needs a value: {argument}={chosen.value}")
        _store(values, name, argument, value)
    if "help" in values:
        # The other arguments may be an entire command line to which --help was added.
        values["help"] += (*(flag.name for flag in passes), *(one for one in inputs if _PASS_NAME.fullmatch(one)))
        return Arguments(**values)
    if len(inputs) > 1:
        raise UsageError(f"more than one input file: '{inputs[0]}' and '{inputs[1]}'")
    if inputs:
        values["input"] = inputs[0]
    if values.get("pass_pipeline") is not None and passes:
        raise UsageError(f"'{passes[0].text}' is not allowed with --pass-pipeline: add the pass to the pipeline")
    if values.get("emit_bytecode") and values.get("split_input_file") is not None:
        raise UsageError("--emit-bytecode is not allowed with --split-input-file: bytecode holds a single module")
    return Arguments(passes=tuple(passes), **values)


def _store(values: dict[str, Any], name: str, argument: str, text: str) -> None:
    flag, (field, chosen) = argument.partition("=")[0], _FIELDS[name]
    try:
        value = chosen.read(text)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"'{flag}' {error}, not '{text}'") from None
    if chosen.repeats:
        value = (*values.get(field, ()), *value)
    elif chosen.value and chosen.implied is None and values.get(field, value) != value:
        raise UsageError(f"'{flag}' is given twice, with '{values[field]}' and '{text}'")
    values[field] = value


INTERRUPTED = 130
TRACEBACK_VARIABLE = "MLIR_SHARD_TRACEBACK"


def exit_status(tool: str, drive: Callable[[], int], failure: int = 1) -> int:
    """Returns the result of `drive`; `failure` for any error, 130 for an interrupt, after a line on standard error."""
    standard_streams.reserve()
    try:
        interrupts.raise_from_now_on()
        return _status_or_failure(tool, drive, failure)
    except KeyboardInterrupt:
        # The process ends in any case; a second SIGINT would end it with a traceback.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        complain(tool, "interrupted")
        return INTERRUPTED


def _status_or_failure(tool: str, drive: Callable[[], int], failure: int) -> int:
    try:
        return _flushed(drive)
    except UsageError as error:
        complain(tool, str(error))
        return failure
    except BrokenPipeError:
        # The reader of the output has closed the pipe.
        standard_streams.discard(sys.stdout)
        return failure
    except Exception as error:
        reason = standard_streams.write_error(error) if isinstance(error, OSError) else None
        if reason is not None:
            complain(tool, f"cannot write to standard output: {reason}")
            standard_streams.discard(sys.stdout)
            return failure
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        complain(tool, _internal_error(error))
        return failure


def _flushed(drive: Callable[[], int]) -> int:
    """Returns the result of `drive`, or raises its SystemExit, after standard output is flushed."""
    try:
        status = drive()
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def complain(tool: str, message: str) -> int:
    """Prints an error message; returns the exit status 1."""
    try:
        print(f"{tool}: error: {message}", file=sys.stderr, flush=True)
    except OSError:
        # The exit status reports the error.
        standard_streams.discard(sys.stderr)
    return 1


def _internal_error(error: Exception) -> str:
    if isinstance(error, ImportError):
        return str(error)
    from mlir_shard.passes.diagnostic import of_exception

    found = of_exception(error, "internal error:", None)
    where = f" at {found.position.file}:{found.position.line}" if found.position else ""
    return f"{found.message.splitlines()[0]}{where}; {TRACEBACK_VARIABLE}=1 shows more"
