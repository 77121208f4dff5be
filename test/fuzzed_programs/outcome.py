# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an input through the parser, the printer and a pipeline, and classifies the outcome."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlir_shard import ParseError, create_context, parse, print_module, run
from mlir_shard.asm.module import BYTECODE_MAGIC
from mlir_shard.passes.diagnostic import Diagnostic, from_host
from mlir_shard.passes.registry import PassFailure

NAME = "fuzzed.mlir"

DONE, REFUSED, NO_MODULE = "done", "refused by a pass", "refused by the parser"
SILENT, UNPLACED, INTERNAL = "failed without an error", "an error without a place", "an internal error"
MADE_INVALID, UNSTABLE = "made invalid by a pass", "printed text differs when it is read"
SIGNAL, HOST_SIGNAL, HANG = "a signal", "a signal in upstream's code", "a hang"
REFUSED_RUN, LEFT, SUCCEEDED = "ended with an error", "something is left", "exit status 0 in spite of a failure"
FINDINGS = (SILENT, UNPLACED, INTERNAL, MADE_INVALID, UNSTABLE, SIGNAL, HANG, LEFT, SUCCEEDED)

# The host numbers a resource if another one in the same context has its name.
_RESOURCE = re.compile(r"<(\w+?)_\d+>")
_INPUTS_PER_CONTEXT = 100
_FRAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an input: `kind` is a finding if it is one of `FINDINGS`; `stage` is the last stage."""

    kind: str
    stage: str
    detail: str = ""


class Runner:
    """Runs inputs in this process. Renews its context at times, because attributes live as long as their context."""

    def __init__(self) -> None:
        self._context = create_context(allow_unregistered=True)
        self._left = _INPUTS_PER_CONTEXT

    def run(self, text: bytes, pipeline: str, begin: Callable[[str], None] = lambda stage: None) -> Outcome:
        """Returns the outcome of an input.

        Args:
            text: the input, in text or bytecode.
            pipeline: the pipeline that runs on a valid module.
            begin: called with the name of each stage.
        """
        self._left -= 1
        if self._left == 0:
            self._context, self._left = create_context(allow_unregistered=True), _INPUTS_PER_CONTEXT
        stage = "parse"

        def at(name: str) -> None:
            nonlocal stage
            stage = name
            begin(name)

        try:
            return self._outcome(text, pipeline, at)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_SHOWN:]
            where = ", ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
            return Outcome(INTERNAL, stage, f"{type(error).__name__}: {error} at {where}")

    def _outcome(self, text: bytes, pipeline: str, at: Callable[[str], None]) -> Outcome:
        at("parse")
        try:
            module = parse(text, self._context, NAME)
        except ParseError as error:
            return _refusal(NO_MODULE, "parse", map(from_host, error.diagnostics), text)
        at("print")
        printed = print_module(module)
        if difference := self._difference(printed):
            return Outcome(UNSTABLE, "print", difference)
        at(pipeline)
        try:
            run(module, pipeline, report=lambda one: None)
        except PassFailure as failure:
            return _refusal(REFUSED, pipeline, failure.diagnostics, text)
        at(f"print after {pipeline}")
        if difference := self._difference(print_module(module)):
            return Outcome(UNSTABLE, f"print after {pipeline}", difference)
        return Outcome(DONE, pipeline)

    def _difference(self, printed: str) -> str:
        """Returns the first difference of a module's text after parsing and printing it again, or an empty text."""
        printed = _RESOURCE.sub(r"<\1>", printed)
        try:
            again = _RESOURCE.sub(r"<\1>", print_module(parse(printed, self._context, "printed.mlir")))
        except ParseError as error:
            return f"not read again: {error}"
        pairs = zip(printed.splitlines(), again.splitlines(), strict=False)
        different = [f"`{one.strip()}` becomes `{other.strip()}`" for one, other in pairs if one != other]
        return "" if printed == again else (different or ["the number of lines"])[0]


def _refusal(kind: str, stage: str, errors: Iterable[Diagnostic], text: bytes) -> Outcome:
    found = list(errors)
    if not any(one.severity == "error" and one.message.strip() for one in found):
        return Outcome(SILENT, stage)
    first = next(one for one in found if one.severity == "error")
    shown = first.heading
    for one in found:
        if "raised" in one.message and one.message.startswith("pass '"):
            return Outcome(INTERNAL, stage, one.heading)
        if any(note.message.startswith("the operation is not valid after") for note in one.notes):
            return Outcome(MADE_INVALID, stage, shown)
    # Bytecode has no lines.
    if kind == NO_MODULE and not text.startswith(BYTECODE_MAGIC) and not _is_in(first, text):
        return Outcome(UNPLACED, stage, shown)
    return Outcome(kind, stage, shown)


def _is_in(one: Diagnostic, text: bytes) -> bool:
    """Returns True if a diagnostic has a position in the text, or in a file that the text itself names."""
    position = one.position
    if position is None or position.file != NAME:
        return b"loc" in text
    lines = text.split(b"\n")
    return position.line <= len(lines) + 1
