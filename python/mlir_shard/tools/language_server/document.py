# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One text: its diagnostics, and the answers to requests about places in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.explain import text as explanation_text
from mlir_shard.explain.explanation import Explanation, explain
from mlir_shard.explain.values import Tensor
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.passes.registry import PassFailure
from mlir_shard.tools import source
from mlir_shard.tools.command_line import DEFAULT_SPLIT_MARKER
from mlir_shard.tools.language_server.outline import Outline, Symbol, Value
from mlir_shard.tools.language_server.words import Span, Text, Word, WordKind, without_locations
from mlir_shard.tools.source import Source

# The maximum number of characters of a line in a hover.
_LONGEST_LINE = 2000
# The ops of modules that are to be partitioned. A local module may contain a grid, but none of these ops.
_ANNOTATING = ("sdy.mesh", "shard.shard")


@dataclass(frozen=True, slots=True)
class Note:
    """A place that a diagnostic mentions; the file is empty for the text itself, the span None if it is unknown."""

    message: str
    file: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Found:
    """A diagnostic at a place of the text; severity is `error`, `warning` or `remark`."""

    severity: str
    message: str
    span: Span
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbol in the outline of a text; the spans are of the name, of the first line and of the last line."""

    name: str
    op: str
    type: str
    word: Span
    first: Span
    last: Span
    children: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Hover:
    """The description of a word: Markdown, and the span of the word."""

    markdown: str
    span: Span


@dataclass(frozen=True, slots=True)
class Hint:
    """The sharding of a value, to be shown behind its name; the column is that of the end of the name."""

    line: int
    column: int
    text: str


class Document:
    """A text of one or several modules, separated by lines `// -----`.

    Args:
        name: the name of the file, for places in explanations.
        content: the text.
    """

    def __init__(self, name: str, content: str) -> None:
        whole = Source(name, without_locations(content).encode(errors="surrogatepass"))
        self._text = Text(whole.text.decode("utf-8", "surrogatepass"))
        self._parts = [_Part(one, self._text) for one in source.split(whole, DEFAULT_SPLIT_MARKER)]

    def diagnostics(self) -> list[Found]:
        """Returns the diagnostics of parsing, verification and the passes."""
        return [self._found(one) for part in self._parts for one in part.diagnostics]

    def outline(self) -> list[Entry]:
        """Returns the symbols; the symbols in a module are its children."""
        return [entry for part in self._parts if part.outline for entry in self._entries(part.outline.symbols, -1)]

    def hover(self, line: int, column: int) -> Hover | None:
        """Returns the type of a value, its sharding after propagation and the reason; or the definition of a name."""
        word = self._text.word_at(self._text.offset(line, column))
        part = self._part_with(word)
        if word is None or part is None:
            return None
        shown = "\n\n".join(part.descriptions(word))
        return Hover(shown, self._span(word)) if shown else None

    def definition(self, line: int, column: int) -> Span | None:
        """Returns the span that defines the name at a place."""
        word = self._text.word_at(self._text.offset(line, column))
        part = self._part_with(word)
        defined = part.outline.definition(word) if word and part and part.outline else None
        return self._span(defined) if defined else None

    def references(self, line: int, column: int) -> list[Span]:
        """Returns the spans of the name at a place, including its definition."""
        word = self._text.word_at(self._text.offset(line, column))
        part = self._part_with(word)
        if word is None or part is None or part.outline is None or word.kind is WordKind.OTHER:
            return []
        return [self._span(one) for one in part.outline.occurrences(word) if part.contains(one)]

    def hints(self, first: int, last: int) -> list[Hint]:
        """Returns the shardings of the sharded values that are defined in lines."""
        found: dict[tuple[int, int], list[str]] = {}
        for part in self._parts:
            for word, shown in part.shardings():
                span = self._span(word)
                if first <= span.line <= last:
                    found.setdefault((span.line, span.end), []).append(shown)
        return [Hint(line, column, ", ".join(shown)) for (line, column), shown in found.items()]

    def _part_with(self, word: Word | None) -> _Part | None:
        return next((part for part in self._parts if word and part.contains(word)), None)

    def _span(self, word: Word) -> Span:
        return self._text.span(word.start, word.end)

    def _found(self, one: Diagnostic) -> Found:
        span = self._span_of(one)
        message = one.message if span or one.place == self._parts[0].name else f"{one.message} (at {_place(one)})"
        return Found(one.severity, message, span or Span(0, 0, 0), tuple(map(self._note, one.notes)))

    def _note(self, one: Diagnostic) -> Note:
        span = self._span_of(one)
        if span is None and one.position is not None:
            line, column = one.position.line - 1, one.position.column - 1
            return Note(one.message, one.position.file, Span(line, column, column))
        return Note(one.message, "", span)

    def _span_of(self, one: Diagnostic) -> Span | None:
        position = one.position
        if position is None or position.file != self._parts[0].name:
            return None
        return self._text.error_span(position.line - 1, position.column - 1)

    def _entries(self, symbols: Sequence[Symbol], parent: int) -> Iterator[Entry]:
        for number, symbol in enumerate(symbols):
            if symbol.parent == parent:
                children = tuple(self._entries(symbols, number))
                first = self._text.span(symbol.start, symbol.end)
                last = self._text.span(max(symbol.start, symbol.end - 1), symbol.end)
                yield Entry(symbol.word.name, symbol.op, symbol.type, self._span(symbol.word), first, last, children)


def _place(one: Diagnostic) -> str:
    return one.heading.rsplit(f": {one.severity}: ", 1)[0] if one.position or one.place else "an unknown location"


class _Part:
    """A module of a text; if it is not valid, only its text and diagnostics."""

    def __init__(self, part: Source, text: Text) -> None:
        self.name = part.name
        self._text, self._source = text, part
        # The part begins with empty lines in place of the parts before it.
        content = part.text
        self._lines = len(content) - len(content.lstrip(b"\n")), content.count(b"\n")
        self.diagnostics: list[Diagnostic] = []
        self._module = self._parsed()
        self._explanation = self._explained()

    @cached_property
    def outline(self) -> Outline | None:
        """The definitions of the module; None if it is not valid."""
        return None if self._module is None else Outline(self._module, self._text)

    def contains(self, word: Word) -> bool:
        """Returns whether a word is in this part."""
        return self._lines[0] <= self._text.span(word.start, word.end).line <= self._lines[1]

    def descriptions(self, word: Word) -> Iterator[str]:
        """Yields the descriptions of a word as Markdown."""
        if self.outline is None:
            return
        if word.kind is WordKind.OTHER:
            values = self.outline.values_of_op_at(word)
        else:
            defined = self.outline.definition(word)
            values = self.outline.values_defined_at(defined) if defined else ()
            if word.kind is not WordKind.VALUE and defined is not None:
                yield self._definition_line(defined)
        if word.index is not None and word.index < len(values):
            values = [values[word.index]]
        for value in values:
            yield self._value(value)

    def shardings(self) -> Iterator[tuple[Word, str]]:
        """Yields the names and the shardings of the values that are sharded."""
        if self.outline is None or self._explanation is None:
            return
        for value in self.outline.values():
            tensor = self._tensors.get((*value.place, value.index))
            if tensor is not None and tensor.sharding is not None and not tensor.sharding.is_fully_replicated:
                yield value.word, explanation_text.sharding_text(tensor)

    def _value(self, value: Value) -> str:
        several = f"#{value.index}" if value.index else ""
        lines = [f"```mlir\n{_text_of(value.word.name)}{several}: {value.type}\n```"]
        tensor = self._tensors.get((*value.place, value.index))
        if tensor is not None and self._explanation is not None:
            explained = explanation_text.tensor_text(self._explanation, tensor).split("\n")[1:]
            lines.append("```text\n" + "\n".join(line.removeprefix("  ") for line in explained) + "\n```")
        return "\n".join(lines)

    def _definition_line(self, word: Word) -> str:
        content = self._text.content
        end = content.find("\n", word.end)
        line = content[content.rfind("\n", 0, word.start) + 1 : len(content) if end < 0 else end]
        line = _text_of(line.strip())
        return f"```mlir\n{line if len(line) <= _LONGEST_LINE else f'{line[:_LONGEST_LINE]} …'}\n```"

    @cached_property
    def _tensors(self) -> dict[tuple[int, int, int], Tensor]:
        """Tensors by line, column and index."""
        found: dict[tuple[int, int, int], Tensor] = {}
        for tensor in self._explanation.tensors if self._explanation else ():
            if tensor.op != "result":
                index = 0 if tensor.op.endswith("argument") else tensor.index
                found.setdefault((tensor.place.line, tensor.place.column, index), tensor)
        return found

    def _parsed(self) -> Any:
        context = create_context()
        try:
            with diagnostic.handled(context, self._report):
                return parse(self._source.text, context, self.name)
        except asm.ParseError as error:
            for one in error.diagnostics:
                self._report(one)
            return None

    def _explained(self) -> Explanation | None:
        if self._module is None or not operations_named(self._module, *_ANNOTATING):
            return None
        sources = {self.name: self._source.text.decode(errors="replace")}
        try:
            with diagnostic.reported(self.diagnostics.append):
                return explain(self._module, sources=sources)
        except PassFailure as failure:
            self.diagnostics += failure.diagnostics
            return None

    def _report(self, one: Any) -> bool:
        self.diagnostics.append(diagnostic.from_host(one))
        return True


def _text_of(content: str) -> str:
    return content.encode("latin-1").decode(errors="replace")
