# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values, symbols and scopes of a parsed text, with their places in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlir_shard.dialects.word_places import operation_end
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.tools.language_server.words import Text, Word, WordKind


@dataclass(frozen=True, slots=True)
class Value:
    """A result or a block argument.

    Attributes:
        word: the word that defines the value; index: its index among the results that share the name.
        type: the text of its type.
        place: line and column of its location, from 1, as in explanations.
    """

    word: Word
    index: int
    type: str
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Symbol:
    """An op that defines a symbol.

    Attributes:
        word: the name where it is defined.
        op: the name of the op; type: that of a function, empty for others.
        start, end: offsets of the op in the text.
        parent: the number of the enclosing symbol, -1 if none exists.
    """

    word: Word
    op: str
    type: str
    start: int
    end: int
    parent: int


class Outline:
    """The definitions of a module that was read from a text."""

    def __init__(self, module: Any, text: Text) -> None:
        self._module, self._text = module, text
        self._symbols: list[Symbol] = []
        whole = module.operation
        self._read_symbols(whole, self._add_symbol(whole, -1) if "sym_name" in whole.attributes else -1)

    @property
    def symbols(self) -> Sequence[Symbol]:
        """All symbols, each before those inside it."""
        return self._symbols

    @cached_property
    def _defined(self) -> dict[int, list[Value]]:
        """The values by the offsets of the words that define them."""
        found: dict[int, list[Value]] = {}
        for value in self._read_values():
            found.setdefault(value.word.start, []).append(value)
        return found

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], list[Value]]:
        found: dict[tuple[int, int], list[Value]] = {}
        for values in self._defined.values():
            for value in values:
                found.setdefault(value.place, []).append(value)
        return found

    def values(self) -> Iterator[Value]:
        """Yields all values, each before those inside its op."""
        for values in self._defined.values():
            yield from values

    def values_defined_at(self, word: Word) -> Sequence[Value]:
        """Returns the values that a word defines."""
        return self._defined.get(word.start, ())

    def values_of_op_at(self, word: Word) -> Sequence[Value]:
        """Returns the results of the op whose location is that of a word."""
        span = self._text.span(word.start, word.end)
        return self._by_place.get((span.line + 1, span.start + 1), ())

    def symbol(self, name: str) -> Symbol | None:
        """Returns the first symbol with a name."""
        return next((one for one in self._symbols if one.word.name == name), None)

    def definition(self, word: Word) -> Word | None:
        """Returns the word that defines the name of a word."""
        if word.kind is WordKind.SYMBOL:
            symbol = self.symbol(word.name)
            return None if symbol is None else symbol.word
        found = None
        for one in self.occurrences(word):
            if one.start in self._defined if word.kind is WordKind.VALUE else self._begins_line(one):
                # Sibling regions may define the same name, and in a graph region the definition may follow its uses.
                if found is not None and one.start > word.start:
                    break
                found = one
        return found

    def occurrences(self, word: Word) -> Iterator[Word]:
        """Yields the words with the same name; for values and blocks, those in the same function."""
        is_local = word.kind in (WordKind.VALUE, WordKind.BLOCK)
        start, end = self._function_around(word.start) if is_local else (0, len(self._text.content))
        for one in self._text.words:
            if one.kind is word.kind and one.name == word.name and start <= one.start < end:
                yield one

    def _function_around(self, offset: int) -> tuple[int, int]:
        around = [one for one in self._symbols if one.type and one.start <= offset < one.end]
        return (around[-1].start, around[-1].end) if around else (0, len(self._text.content))

    def _begins_line(self, word: Word) -> bool:
        line_start = self._text.content.rfind("\n", 0, word.start) + 1
        return not self._text.content[line_start : word.start].strip()

    def _read_symbols(self, around: Any, parent: int) -> None:
        for region in around.regions:
            for block in region.blocks:
                for one in block.operations:
                    op = one.operation
                    number = self._add_symbol(op, parent) if "sym_name" in op.attributes else parent
                    if "function_type" not in op.attributes:
                        self._read_symbols(op, number)

    def _add_symbol(self, op: Any, parent: int) -> int:
        """Adds a symbol and returns its number, or that of its parent if its name is not in the text."""
        start = self._offset(op.location)
        if start is None:
            return parent
        name = ir.StringAttr(op.attributes["sym_name"]).value.encode().decode("latin-1")
        end = operation_end(self._text.content, start)
        word = self._text.word_from(start, f"@{name}") or self._text.word_from(start, f'@"{name}"')
        if word is None or word.start > end:
            return parent
        type_ = str(op.attributes["function_type"]) if "function_type" in op.attributes else ""
        self._symbols.append(Symbol(word, op.name, type_, start, end, parent))
        return len(self._symbols) - 1

    def _read_values(self) -> Iterator[Value]:
        for op in ops_below(self._module):
            yield from self._results(op)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        yield from self._argument(argument)

    def _results(self, op: Any) -> Iterator[Value]:
        types = [str(result.type) for result in op.results]
        start = self._offset(op.location) if types else None
        if start is not None:
            names = self._text.names_of_results(start)
            for (word, index), type_ in zip(names, types, strict=False):
                yield Value(word, index, type_, (op.location.start_line, op.location.start_col))

    def _argument(self, argument: Any) -> Iterator[Value]:
        location = argument.location
        start = self._offset(location)
        word = None if start is None else self._text.word_at(start)
        if word is not None and word.kind is WordKind.VALUE and word.start == start:
            yield Value(word, 0, str(argument.type), (location.start_line, location.start_col))

    def _offset(self, location: Any) -> int | None:
        if not isinstance(location, ir.FileLineColLoc) or location.start_line < 1:
            return None
        return self._text.offset(location.start_line - 1, location.start_col - 1)
