# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of shard-opt: parse, verify, run the pipeline, print; or check diagnostics against expectations."""

from __future__ import annotations

import dataclasses
import re
import sys
from contextlib import AbstractContextManager
from typing import Any

from mlir_shard import _native, asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.passes import diagnostic, runner
from mlir_shard.passes.diagnostic import OPERATION_NOTE, Diagnostic, Position, error
from mlir_shard.passes.instrumentation import Instrumentation, PrintIR, Selection, Timing
from mlir_shard.passes.registry import PassFailure
from mlir_shard.passes.resolution import Nest
from mlir_shard.passes.runner import Report
from mlir_shard.tools.command_line import Arguments
from mlir_shard.tools.source import Console, Source

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<pattern>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}$"
)


@dataclasses.dataclass(slots=True)
class Expectation:
    """A diagnostic that the input expects at `line`, None for no position; `position` is that of the comment."""

    severity: str
    text: str
    pattern: re.Pattern[str]
    line: int | None
    position: Position
    seen: bool = False


class Verifier:
    """A collector of diagnostics that reports unexpected ones, and expected ones that are missing."""

    def __init__(self, source: Source, only_expected: bool = False) -> None:
        self._name = source.name
        self._only_expected = only_expected
        self._problems: list[Diagnostic] = []
        self._expected = self._read(source)

    def _read(self, source: Source) -> list[Expectation]:
        found: list[Expectation] = []
        waiting: list[Expectation] = []
        last_plain_line = 0
        number = 0
        for number, raw in enumerate(source.text.decode(errors="replace").split("\n"), start=1):
            line = raw.rstrip()
            match = _EXPECTED.search(line)
            if match is None:
                for expectation in waiting:
                    expectation.line = number
                waiting.clear()
                last_plain_line = number
                continue
            where = match["where"]
            about = {None: number, "above": last_plain_line, "below": 0, "unknown": None}.get(where, 0)
            if where and where[0] in "+-":
                about = number + int(where)
            position = Position(source.name, number, len(line[: match.start()].encode()) + 1)
            pattern = self._pattern(match["text"], bool(match["pattern"]), position)
            expectation = Expectation(match["severity"], match["text"], pattern, about, position)
            if where == "below":
                waiting.append(expectation)
            found.append(expectation)
        return found

    def _pattern(self, text: str, holds_patterns: bool, position: Position) -> re.Pattern[str]:
        if not holds_patterns:
            return re.compile(re.escape(text))
        # Literal text and patterns alternate.
        parts = re.split(r"\{\{(.*?)\}\}", text)
        try:
            return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))
        except re.error as wrong:
            self._problems.append(error(f"invalid pattern in the expected message: {wrong}", position))
            return re.compile(re.escape(text))

    def report(self, diagnostic: Diagnostic) -> None:
        """Records a diagnostic and its notes."""
        position = diagnostic.position
        if not self._matches(diagnostic.severity, diagnostic.message, position) and not self._only_expected:
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            self._problems.append(Diagnostic("error", message, position, diagnostic.place))
        for note in diagnostic.notes:
            # As in mlir-opt, the notes in which the host prints the operation need not be expected.
            if not note.message.startswith(OPERATION_NOTE):
                self.report(note)

    def _matches(self, severity: str, message: str, position: Position | None) -> bool:
        if position is not None and position.file != self._name:
            return False
        line = position.line if position else None
        for expectation in self._expected:
            if expectation.seen or expectation.severity != severity or expectation.line != line:
                continue
            if expectation.pattern.search(message):
                expectation.seen = True
                return True
        return False

    def problems(self) -> tuple[Diagnostic, ...]:
        """Returns the deviations from expectations, as errors; empty if none exist."""
        missing = [
            error(f'expected {one.severity} "{one.text}" was not produced', one.position)
            for one in self._expected
            if not one.seen
        ]
        return (*self._problems, *missing)


class Session:
    """The state that the parts of an input share."""

    def __init__(self, arguments: Arguments, pipeline: Nest, console: Console, timing: Timing) -> None:
        self.succeeded = True
        self._arguments = arguments
        self._pipeline = pipeline
        self._console = console
        self._timing = timing
        self._context = create_context(allow_unregistered=arguments.allow_unregistered_dialect)
        self._instrumentations = self._make_instrumentations()

    def process(self, part: Source) -> str | bytes:
        """Returns the module of a part after all passes, as text or bytecode; empty if there was an error."""
        mode = self._arguments.verify_diagnostics
        if mode is None:
            text = self._transform(part, self._console.report)
            self.succeeded &= text is not None
            return text or ""
        verifier = Verifier(part, only_expected=mode == "only-expected")
        text = self._transform(part, verifier.report)
        for problem in verifier.problems():
            self.succeeded = False
            self._console.report(problem)
        return text or ""

    def _transform(self, part: Source, report: Report) -> str | bytes | None:
        try:
            with self._timing.phase("Parser"), _reported(self._context, report):
                module = parse(part.text, self._context, part.name)
            self._explain(module, part)
            runner.run(
                module,
                self._pipeline,
                verify_each=self._arguments.verify_each,
                instrumentations=self._instrumentations,
                report=report,
            )
            if not self._is_within_budget(module, report):
                return None
            if not self._reports_memory(module, report):
                return None
        except asm.ParseError as error:
            for one in error.diagnostics:
                report(diagnostic.from_host(one))
            return None
        except PassFailure:
            return None
        _native.set_at_work(part.name, "while printing the module after the passes")
        with self._timing.phase("Output"), _reported(self._context, report):
            if self._arguments.emit_bytecode:
                return asm.bytecode_of(module)
            return self._show(module.operation, assume_verified=self._arguments.verify_each)

    def _explain(self, module: Any, part: Source) -> None:
        if self._arguments.explain:
            from mlir_shard.tools import explained

            text = explained.values_text(
                module, self._arguments.explain, {part.name: part.text.decode(errors="replace")}
            )
            print(text, file=sys.stderr, flush=True)

    def _is_within_budget(self, module: Any, report: Report) -> bool:
        if not self._arguments.budget:
            return True
        from mlir_shard.explain.budget import exceeded

        found = exceeded(module, dict(self._arguments.budget))
        for one in found:
            report(one)
        return not found

    def _reports_memory(self, module: Any, report: Report) -> bool:
        path = self._arguments.memory_report
        if path is None:
            return True
        from mlir_shard.explain.memory_report import report_text
        from mlir_shard.explain.quantities import memory_of
        from mlir_shard.tools import output

        try:
            memory = memory_of(module)
        except PassFailure as failure:
            where = failure.where if failure.where is not None else module
            report(diagnostic.at("error", f"cannot predict memory: {failure.message}", where.operation.location))
            return False
        text = report_text(memory, is_json=path.endswith(".json"))
        if path == "-":
            print(text, file=sys.stderr, end="", flush=True)
        else:
            output.write(path, text)
        return True

    def _show(self, op: Any, assume_verified: bool = False) -> str:
        text = asm.print_operation(
            op,
            generic=self._arguments.print_op_generic,
            debug_info=self._arguments.print_debuginfo or self._arguments.pretty_debuginfo,
            pretty_debug_info=self._arguments.pretty_debuginfo,
            local_scope=self._arguments.print_local_scope,
            large_elements_limit=self._arguments.elide_elementsattrs_if_larger,
            assume_verified=assume_verified,
        )
        return text if text.endswith("\n") else f"{text}\n"

    def _make_instrumentations(self) -> list[Instrumentation]:
        arguments = self._arguments
        found: list[Instrumentation] = [self._timing] if arguments.timing else []
        before = Selection(frozenset(arguments.print_ir_before), arguments.print_ir_before_all)
        after_all = arguments.print_ir_after_all or (arguments.print_ir_after_change and not arguments.print_ir_after)
        after = Selection(frozenset(arguments.print_ir_after), after_all)
        if before or after or arguments.print_ir_after_failure:
            found.append(
                PrintIR(
                    self._show,
                    sys.stderr,
                    before,
                    after,
                    arguments.print_ir_after_change,
                    arguments.print_ir_after_failure,
                    arguments.print_ir_module_scope,
                )
            )
        return found


def _reported(context: Any, report: Report) -> AbstractContextManager[None]:
    """Passes the diagnostics of a context to `report`, as a context manager."""

    def handle(one: Any) -> bool:
        report(diagnostic.from_host(one))
        return True

    return diagnostic.handled(context, handle)
