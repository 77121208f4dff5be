# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checking diagnostics against what comments of the input expect, in mlir-opt's notation.

    // expected-error @+1 {{part of the message}}
    // expected-warning-re @below {{message with a {{pattern}} inside}}

`@+N` and `@-N` count lines from the comment, `@above` and `@below` name the nearest line without such a comment,
`@unknown` a diagnostic without position; nothing at all names the line of the comment.
"""

from __future__ import annotations

import dataclasses
import re

from mlir_shard.passes.diagnostic import Diagnostic, Position, error
from mlir_shard.tools.source import Source

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|note|remark|warning)(?P<pattern>-re)? *"
    r"(?:@(?P<where>[+-]\d+|above|below|unknown))? *\{\{(?P<text>.*)\}\}$"
)


@dataclasses.dataclass(slots=True)
class Expectation:
    """A diagnostic that the input expects: at `line`, None for no position; `position` is that of the comment."""

    severity: str
    text: str
    pattern: re.Pattern[str]
    line: int | None
    position: Position
    seen: bool = False


OPERATION_NOTE = "see current operation: "


class Verifier:
    """Takes diagnostics and says in the end which were not expected and which did not come."""

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
        # Literal text and patterns take turns.
        parts = re.split(r"\{\{(.*?)\}\}", text)
        try:
            return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))
        except re.error as wrong:
            self._problems.append(error(f"the expected message holds no valid pattern: {wrong}", position))
            return re.compile(re.escape(text))

    def report(self, diagnostic: Diagnostic) -> None:
        """Takes a diagnostic and its notes."""
        position = diagnostic.position
        if not self._matches(diagnostic.severity, diagnostic.message, position) and not self._only_expected:
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            self._problems.append(Diagnostic("error", message, position, diagnostic.place))
        for note in diagnostic.notes:
            # As in mlir-opt, nobody has to expect what the host shows of the operation.
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
        """What was not as expected, as errors; empty where all was."""
        missing = [
            error(f'expected {one.severity} "{one.text}" was not produced', one.position)
            for one in self._expected
            if not one.seen
        ]
        return (*self._problems, *missing)
