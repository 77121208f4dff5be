# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From text that has dialects' own syntax to text that the host parses.

Each distinct attribute becomes an alias, defined in front of the text and used, with blanks after it, in the place of
what it stands for: so lines and columns stay, and the host reads an attribute once however often it occurs.
Operations become generic; what follows them goes back to its column where there is room, else the source map says
where it was.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mlir_shard import _native
from mlir_shard.asm.attributes import SYNTAXES, DialectSyntax
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, escape
from mlir_shard.asm.generic import (
    OperationText,
    RegionText,
    Span,
    dictionary_text,
    function_type_text,
    is_quoted_operation,
    read_generic,
)
from mlir_shard.asm.op_templates import AbstractOperation, abstract_operation, next_character, value_numbers
from mlir_shard.asm.operations import OperationReader
from mlir_shard.ods import model
from mlir_shard.ods.model import OpDef

_NAME = re.compile(r'"?([\w$.]+)"?')
_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')


@dataclass(frozen=True, slots=True)
class _Generated:
    """Text of the translation's own, that stands for what begins at `offset` in the user's text."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Text that takes the place of as many characters of the user's text on one line."""

    text: str
    offset: int


_Piece: TypeAlias = "Span | _Generated | _Replaced"


@dataclass(frozen=True, slots=True)
class _Template:
    """An operation in generic form, whatever the names of its values.

    Args:
        operands: the numbers of the values that are operands.
        successors: the bracketed list, or empty.
        arguments: the offsets of the arguments of the region in the abstract text; None where there are none.
        suffix: what follows the regions.
    """

    operands: list[int]
    successors: str
    arguments: Span | None
    suffix: str


def _suffix_of(op: OperationText) -> str:
    attributes = dictionary_text(op.attributes)
    types = one_line(function_type_text(op.operand_types, op.result_types))
    return f"{' ' if attributes else ''}{attributes} : {types}"


def one_line(text: str) -> str:
    """The text without comments and line ends."""
    if "\n" not in text:
        return text
    return _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0].startswith('"') else "", text).replace("\n", " ")


def to_host(text: str) -> _native.HostText:
    """Translates `text`, of characters that stand for bytes. Raises AsmSyntaxError."""
    return Translation(text).result()


def position_of(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _syntax_at(text: str, offset: int) -> DialectSyntax:
    match = re.compile(r"\w+").match(text, offset)
    return SYNTAXES[match[0] if match else ""]


class Translation:
    def __init__(self, text: str) -> None:
        self._text = text
        self._names = _native.find_names(text, list(SYNTAXES))
        self._pieces: list[_Piece] = []
        self._prelude: list[str] = []
        self._alias_of_text: dict[str, str] = {}
        self._alias_of_syntax: dict[tuple[str, str], str] = {}  # by mnemonic and what follows it
        self._alias_of_attribute: dict[str, str] = {}
        self._templates: dict[str, _Template | None] = {}
        self._alias_prefix = "#_"
        while re.search(re.escape(self._alias_prefix) + r"\d", text):
            self._alias_prefix += "_"

    def result(self) -> _native.HostText:
        if self._names:
            self._span(0, len(self._text))
        result = _native.HostText(self._text, "".join(self._prelude))
        for piece in self._pieces:
            if isinstance(piece, _Generated):
                result.add_generated(piece.text, piece.offset)
            elif isinstance(piece, _Replaced):
                result.add_replaced(piece.text, piece.offset)
            else:
                result.add_user(*piece)
        return result

    def _span(self, start: int, end: int) -> None:
        """Adds the pieces for a part of the text."""
        names = self._names
        index = bisect_left(names, start)
        while index < len(names) and names[index] < end:
            name = names[index]
            handled = self._attribute(name, start) if self._text[name] == "#" else self._operation(name, start)
            start = max(start, handled)
            index = bisect_left(names, start, index + 1)
        self._pieces.append((start, end))

    def _attribute(self, name: int, start: int) -> int:
        self._pieces.append((start, name))
        alias, end = self._alias_at(name)
        original = self._text[name:end]
        if len(alias) <= len(original) and "\n" not in original:
            self._pieces.append(_Replaced(alias.ljust(len(original)), name))
        else:
            self._pieces.append(_Generated(alias, name))
        return end

    def _alias_at(self, offset: int) -> tuple[str, int]:
        """The alias for the attribute at `offset`, and where the attribute ends."""
        text = self._text
        opening = text.find("<", offset)
        close = _native.find_closing(text, opening) if opening >= 0 else -1
        if close >= 0:
            known = self._alias_of_text.get(text[offset : close + 1])
            if known is not None:
                return known, close + 1
        cursor = Cursor(text, offset)
        syntax = _syntax_at(text, offset + 1)
        mnemonic, value = syntax.read_named_attribute(cursor, self._value_of_alias)
        alias = self._alias(syntax, mnemonic, value)
        self._alias_of_text[text[offset : cursor.position]] = alias
        return alias, cursor.position

    def _alias(self, syntax: DialectSyntax, mnemonic: str, value: Any) -> str:
        canonical = syntax.print(mnemonic, value)
        return self._alias_for(f'#{syntax.definition.name}.{mnemonic}<"{escape(canonical)}">')

    def _alias_for(self, attribute: str) -> str:
        """The alias for an attribute in the host's syntax."""
        alias = self._alias_of_attribute.get(attribute)
        if alias is None:
            alias = f"{self._alias_prefix}{len(self._alias_of_attribute)}"
            self._alias_of_attribute[attribute] = alias
            self._prelude.append(f"{alias} = {attribute} ")
        return alias

    def _value_of_alias(self, name: str) -> Any:
        """The value of an alias that the user's text defines; KeyError where it defines none for a known dialect."""
        pattern = rf"^[ \t]*#{re.escape(name)}\s*=\s*(#(?:{'|'.join(SYNTAXES)})[.<])"
        match = re.search(pattern, self._text, re.MULTILINE)
        if not match:
            raise KeyError(name)
        cursor = Cursor(self._text, match.start(1))
        return _syntax_at(self._text, match.start(1) + 1).read_named_attribute(cursor, self._value_of_alias)[1]

    def _operation(self, name: int, start: int) -> int:
        """Translates the operation whose name is at `name`; gives where it ends, or `start` where there is none."""
        quoted = self._text[name] == '"'
        match = _NAME.match(self._text, name)
        op_name = match[1] if match else ""
        syntax = SYNTAXES.get(op_name.split(".")[0])
        if match is None or syntax is None or op_name not in syntax.operations:
            return start
        definition = syntax.operations[op_name]
        follows = next_character(self._text, match.end())
        if quoted and not (follows == "(" and is_quoted_operation(self._text, name)):
            return start
        if not quoted and follows in ("=", ","):
            return start  # the name of an attribute in a dictionary
        self._pieces.append((start, name))
        found = abstract_operation(self._text, name)
        template = None if found is None else self._template_of(found, syntax, definition, match.end() - name)
        if found is not None and template is not None:
            operands = [found.values[number] for number in template.operands]
            regions = [] if found.body is None else [found.region(template.arguments)]
            self._add_generic(op_name, operands, template.successors, regions, template.suffix, (name, found.end))
            return found.end
        cursor = Cursor(self._text, match.end())
        op = self._read(cursor, syntax, definition, quoted=quoted)
        self._add_type_runs(definition, op, name)
        span = name, cursor.position
        self._add_generic(op_name, op.operands, op.successors, op.regions, _suffix_of(op), span)
        return cursor.position

    def _read(self, cursor: Cursor, syntax: DialectSyntax, definition: OpDef, *, quoted: bool) -> OperationText:
        """The operation whose name ends at the cursor, in generic form if that is quoted."""
        if not quoted:
            return OperationReader(syntax, definition, cursor, self).read()
        op = read_generic(cursor)
        op.attributes = {key: self.read_any(text) for key, text in op.attributes.items()}
        return op

    def _template_of(
        self, found: AbstractOperation, syntax: DialectSyntax, definition: OpDef, name_length: int
    ) -> _Template | None:
        """Returns the translation of an operation, whatever the names of its values; None if it has to be read."""
        if found.text not in self._templates:
            self._templates[found.text] = self._made_template(found, syntax, definition, name_length)
        return self._templates[found.text]

    def _made_template(
        self, found: AbstractOperation, syntax: DialectSyntax, definition: OpDef, name_length: int
    ) -> _Template | None:
        text = found.text
        cursor = Cursor(text, name_length)
        try:
            op = self._read(cursor, syntax, definition, quoted=text[0] == '"')
            self._add_type_runs(definition, op, 0)
        except AsmSyntaxError:
            # The error is to be of the place in the user's text.
            return None
        operands = value_numbers(op.operands)
        # A region on one line is read with the operation.
        is_whole = not text[cursor.position :].strip() and len(op.regions) == (found.body is not None)
        if operands is None or not is_whole:
            return None
        arguments = op.regions[0].arguments if op.regions else None
        return _Template(operands, op.successors, arguments, _suffix_of(op))

    def _add_type_runs(self, definition: OpDef, op: OperationText, name: int) -> None:
        types = {model.OPERAND_LENGTHS: op.operand_types, model.RESULT_LENGTHS: op.result_types}
        for attribute in model.attribute_names(definition):
            try:
                lengths = model.lengths(types[attribute])
            except model.TooManyRuns as error:
                raise AsmSyntaxError(name, str(error)) from None
            op.attributes[attribute] = self._alias_for(f"array<i32: {', '.join(map(str, lengths))}>")

    def _add_generic(
        self,
        op_name: str,
        operands: Sequence[str],
        successors: str,
        regions: Sequence[RegionText],
        suffix: str,
        span: Span,
    ) -> None:
        """Adds the pieces of an operation that stands in a part of the text; `suffix` is what follows its regions."""
        pieces, (start, end) = self._pieces, span
        pieces.append(_Generated(f'"{op_name}"({", ".join(operands)}){successors}', start))
        for number, region in enumerate(regions):
            label = region.arguments is not None
            opening = (" ({" if number == 0 else ", {") + ("^bb0(" if label else "")
            pieces.append(_Generated(opening, region.body[0]))
            if region.arguments is not None:
                self._span(*region.arguments)
                pieces.append(_Generated("):", region.arguments[1]))
            self._span(*region.body)
            pieces.append(_Generated("}" + (")" if number == len(regions) - 1 else ""), region.body[1]))
        pieces.append(_Generated(suffix, end))

    def read(self, syntax: DialectSyntax, mnemonic: str, cursor: Cursor) -> str:
        """The host's text for an attribute of a dialect, which stands at `cursor` without its name."""
        if cursor.at("#") and not cursor.at(f"#{syntax.definition.name}."):
            return cursor.skip_untyped_attribute()
        cursor.skip_space()
        known, text, start = self._alias_of_syntax, cursor.text, cursor.position
        if text.startswith("<", start):
            close = _native.find_closing(text, start)
            alias = known.get((mnemonic, text[start : close + 1])) if close >= 0 else None
            if alias is not None:
                cursor.position = close + 1
                return alias
        alias = self._alias(syntax, mnemonic, syntax.parse(mnemonic, cursor, self._value_of_alias))
        known[mnemonic, text[start : cursor.position]] = alias
        return alias

    def read_any(self, text: str) -> str:
        """An attribute of any dialect on one line, those of known dialects inside it as aliases."""
        text = one_line(text)
        parts, position = [], 0
        for name in _native.find_names(text, list(SYNTAXES)):
            if text[name] != "#" or name < position:
                continue
            cursor, syntax = Cursor(text, name), _syntax_at(text, name + 1)
            mnemonic, value = syntax.read_named_attribute(cursor, self._value_of_alias)
            parts += [text[position:name], self._alias(syntax, mnemonic, value)]
            position = cursor.position
        return "".join([*parts, text[position:]])
