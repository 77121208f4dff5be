# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics as values, and remarks and warnings of passes in Python.

A diagnostic comes from the host, a failed pass, or an exception in a user's Python. The host's bindings emit errors
alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import IO, Any

from mlir_shard.ir.python_frames import frame_to_show

OPERATION_NOTE = "see current operation: "
"""The prefix of the notes in which the host prints an operation."""
_WHOLE_FILE = re.compile(r'"(.*)":0:0')


@dataclasses.dataclass(frozen=True, slots=True)
class Position:
    """A place in a text; line and column count from 1, columns in bytes.

    is_python: the file is Python code that this process runs, not one that a location of a module names.
    """

    file: str
    line: int
    column: int
    is_python: bool = dataclasses.field(default=False, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: severity is `error`, `warning`, `remark` or `note`.

    place: the text of a location without a position, for example `"name"`; empty if unknown.
    """

    severity: str
    message: str
    position: Position | None = None
    place: str = ""
    notes: tuple[Diagnostic, ...] = ()

    @property
    def heading(self) -> str:
        """The first line, `file:line:column: error: message`."""
        return f"{self.place_text}: {self.severity}: {self.message}"

    @property
    def place_text(self) -> str:
        """The position that the first line begins with: `file:line:column`, or a placeholder if it is unknown."""
        position = self.position
        return f"{position.file}:{position.line}:{position.column}" if position else self.place or "<unknown>:0"

    def __str__(self) -> str:
        return "\n".join([self.heading, *map(str, self.notes)])


@contextlib.contextmanager
def handled(context: Any, handle: Callable[[Any], bool]) -> Iterator[None]:
    """Passes the diagnostics of an `ir.Context` to `handle`, which returns whether it has handled one.

    An exception in `handle`, such as an interrupt, cannot pass through the native code that calls `handle`, so it is
    raised at the end of the context.
    """
    raised: list[BaseException] = []

    def guarded(reported: Any) -> bool:
        try:
            return handle(reported)
        except BaseException as exception:
            raised.append(exception)
            return True

    handler = context.attach_diagnostic_handler(guarded)
    try:
        yield
    finally:
        handler.detach()
        if raised:
            raise raised[0]


@contextlib.contextmanager
def standard_error_to(file: IO[bytes]) -> Iterator[None]:
    """Redirects the standard error output of native code to a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def error(message: str, position: Position | None = None) -> Diagnostic:
    """Returns an error without notes."""
    return Diagnostic("error", message, position)


def at(severity: str, message: str, location: Any, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    """Returns a diagnostic at an `ir.Location`. For inlined code, notes show the places of the calls.

    For a call stack of JAX it shows the innermost frame that is not in JAX.
    """
    position, callers = _position(location)
    if position is not None:
        places = (position, *callers)
        shown, count = frame_to_show([one.file for one in places])
        position, callers = places[shown], places[count:]
    called = tuple(Diagnostic("note", "called from", caller) for caller in callers)
    return Diagnostic(severity, message, position, "" if position else _place(location), called + notes)


def location_of(where: Any) -> Any:
    """Returns the location of an operation or a value. A location or None is returned unchanged."""
    from mlir_shard.host import ir

    return where if where is None or isinstance(where, ir.Location) else where.location


def _place(location: Any) -> str:
    text = str(location.attr).removeprefix("loc(").removesuffix(")")
    # An operation without text of its own, an implicit module, is at line 0 of its file.
    whole_file = _WHOLE_FILE.fullmatch(text)
    return whole_file[1] if whole_file else "" if text == "unknown" else text


def from_host(reported: Any) -> Diagnostic:
    """Copies an `ir.Diagnostic`, which is valid only while it is reported, or an `ir.DiagnosticInfo`."""
    from mlir_shard import asm

    notes = tuple(from_host(note) for note in reported.notes)
    return at(reported.severity.name.lower(), asm.to_sdy_syntax(reported.message), reported.location, notes)


def _position(location: Any) -> tuple[Position | None, tuple[Position, ...]]:
    """Returns the first position in a location, and the positions of the calls through which it was inlined."""
    from mlir_shard.host import ir

    # The location of a diagnostic inside an exception has the base class as its type.
    location = ir.Location.from_attr(location.attr, location.context)
    if isinstance(location, ir.FileLineColLoc) and location.start_line > 0:
        return Position(location.filename, location.start_line, location.start_col), ()
    if isinstance(location, ir.NameLoc):
        return _position(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        found, inner = _position(location.callee)
        caller, outer = _position(location.caller)
        if found is None:
            return caller, outer
        return found, inner + ((caller,) if caller else ()) + outer
    if isinstance(location, ir.FusedLoc):
        for one in location.locations:
            found, callers = _position(one)
            if found:
                return found, callers
    return None, ()


def of_exception(exception: BaseException, prefix: str, file: str | None, severity: str = "error") -> Diagnostic:
    """Returns the diagnostic of an exception in a user's Python code, at the innermost line inside `file`.

    The message is `prefix`, the type and the message of the exception. If no frame is in `file`, or it is None, the
    innermost frame of all is used. Raises a KeyboardInterrupt that is among the causes of the exception: before version
    3.12, Python wraps exceptions from a class's `__set_name__`.
    """
    cause: BaseException | None = exception
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise cause
        cause = cause.__cause__
    frames = traceback.extract_tb(exception.__traceback__)
    inside = [frame for frame in frames if frame.filename == file] or list(frames)
    text = str(exception).strip()
    message = f"{prefix} {type(exception).__name__}" + (f": {text}" if text else "")
    if not inside:
        return Diagnostic(severity, message)
    frame = inside[-1]
    # Columns of frames are known from Python 3.11 on.
    column = getattr(frame, "colno", None)
    position = Position(frame.filename, frame.lineno or 1, 1 if column is None else column + 1, is_python=True)
    return Diagnostic(severity, message, position)


def of_declaration(message: str, declared: Any) -> Diagnostic:
    """Returns an error at the line where a class or function is declared."""
    try:
        file = inspect.getfile(declared)
        line = inspect.getsourcelines(declared)[1]
    except (OSError, TypeError):
        # The source may not exist any more.
        return error(message)
    return error(message, Position(file, line, 1, is_python=True))


# The reporter of the innermost run of the thread.
_reporter: ContextVar[Callable[[Diagnostic], None] | None] = ContextVar("reporter", default=None)


@contextlib.contextmanager
def reported(report: Callable[[Diagnostic], None] | None) -> Iterator[None]:
    """Passes diagnostics to `report`. If it is None, to the handler in place, or to standard error, as MLIR does."""
    token = _reporter.set(report or _reporter.get() or _print)
    try:
        yield
    finally:
        _reporter.reset(token)


def remark(message: str, where: Any, notes: Sequence[tuple[str, Any]] = ()) -> None:
    """Emits a remark about a program.

    Args:
        message: in one line.
        where: the operation, value or location that the remark is about.
        notes: additional messages, each with the operation, value or location that it is about.
    """
    _say("remark", message, where, notes)


def warn(message: str, where: Any, notes: Sequence[tuple[str, Any]] = ()) -> None:
    """Emits a warning about a probable mistake in a program; the pass continues.

    Args:
        message, where, notes: as for `remark`.
    """
    _say("warning", message, where, notes)


def _say(severity: str, message: str, where: Any, notes: Sequence[tuple[str, Any]]) -> None:
    of_notes = tuple(at("note", text, location_of(place)) for text, place in notes)
    report = _reporter.get() or _print
    report(at(severity, message, location_of(where), of_notes))


def _print(one: Diagnostic) -> None:
    print(one, file=sys.stderr, flush=True)
