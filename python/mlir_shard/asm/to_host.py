# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translation of text in the custom syntax of dialects to text that the host parses.

Each distinct attribute becomes an alias, which is defined in front of the text and replaces each occurrence, padded
with blanks: lines and columns do not change, and the host parses each distinct attribute once. Operations become
generic. The text after an operation returns to its column if there is room; otherwise a source map contains its
position.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from mlir_shard import _native
from mlir_shard.asm.attributes import SYNTAXES, DialectSyntax, operation_at, operation_names
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, escape
from mlir_shard.asm.generic import OperationText, RegionText, dictionary_text, function_type_text, read_generic
from mlir_shard.asm.operations import OperationReader
from mlir_shard.ods import model
from mlir_shard.ods.model import OpDef

_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')


def one_line(text: str) -> str:
    """Returns the text without comments, with blanks in place of line ends."""
    if "\n" not in text:
        return text
    return _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0].startswith('"') else "", text).replace("\n", " ")


def to_host(text: str) -> _native.HostText:
    """Translates `text`, whose characters stand for bytes. Raises AsmSyntaxError."""
    return Translation(text).result()


def _start(region: RegionText) -> str:
    """Returns the text of a region before its arguments, or before its body if none exist."""
    return "{" if region.arguments is None else "{^bb0("


def _tail(op: OperationText) -> str:
    """Returns the text of an operation after its regions."""
    attributes = dictionary_text(op.attributes)
    types = one_line(function_type_text(op.operand_types, op.result_types))
    return f"{' ' if attributes else ''}{attributes} : {types}"


def position_of(text: str, offset: int) -> tuple[int, int]:
    """Returns the line and column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@lru_cache(256)
def _lengths_text(runs: tuple[int, ...]) -> str:
    """Returns the attribute of the lengths of runs in the host's syntax."""
    return f"array<i32: {', '.join(map(str, model.padded(runs)))}>"


def _syntax_at(text: str, offset: int) -> DialectSyntax:
    match = re.compile(r"\w+").match(text, offset)
    return SYNTAXES[match[0] if match else ""]


class Translation:
    """A translator of the distinct attributes and operations of a text, which native code inserts in their places."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._translated = _native.Translation(text, list(SYNTAXES), operation_names(), is_generic=False)
        self._prelude: list[str] = []
        self._alias_of_syntax: dict[tuple[str, str], str] = {}  # by mnemonic and what follows it
        self._alias_of_attribute: dict[str, str] = {}
        self._alias_prefix = "#_"
        while self._alias_prefix in text and re.search(re.escape(self._alias_prefix) + r"\d", text):
            self._alias_prefix += "_"

    def result(self) -> _native.HostText:
        """Returns the text for the host. Raises AsmSyntaxError."""
        self._translated.translate(0, len(self._text), self)
        return _native.HostText(self._translated, "".join(self._prelude))

    def attribute(self, offset: int) -> tuple[str, int]:
        """Returns the alias for the attribute at `offset` and the end of the attribute. Raises AsmSyntaxError."""
        cursor = Cursor(self._text, offset)
        syntax = _syntax_at(self._text, offset + 1)
        mnemonic, value = syntax.read_named_attribute(cursor, self._value_of_alias)
        return self._alias(syntax, mnemonic, value), cursor.position

    def _alias(self, syntax: DialectSyntax, mnemonic: str, value: Any) -> str:
        canonical = syntax.print(mnemonic, value)
        return self._alias_for(f'#{syntax.definition.name}.{mnemonic}<"{escape(canonical)}">')

    def _alias_for(self, attribute: str) -> str:
        """Returns the alias of an attribute in the host's syntax, which is defined at its first use."""
        alias = self._alias_of_attribute.get(attribute)
        if alias is None:
            alias = f"{self._alias_prefix}{len(self._alias_of_attribute)}"
            self._alias_of_attribute[attribute] = alias
            self._prelude.append(f"{alias} = {attribute} ")
        return alias

    def _value_of_alias(self, name: str) -> Any:
        """Returns the value of an alias in the user's text. Raises KeyError if no known dialect has its attribute."""
        pattern = rf"^[ \t]*#{re.escape(name)}\s*=\s*(#(?:{'|'.join(SYNTAXES)})[.<])"
        match = re.search(pattern, self._text, re.MULTILINE)
        if not match:
            raise KeyError(name)
        cursor = Cursor(self._text, match.start(1))
        return _syntax_at(self._text, match.start(1) + 1).read_named_attribute(cursor, self._value_of_alias)[1]

    def abstract_operation(self, text: str, has_region: bool) -> _native.OperationTemplate | None:
        """Returns the translation of operations that differ only in the names of values; None to read each of them."""
        cursor = Cursor(text)
        try:
            op, head = self._read(cursor)
        except AsmSyntaxError:
            # The operation is read again, so that the error has its position in the user's text.
            return None
        # A region on one line is read together with its operation.
        if text[cursor.position :].strip() or len(op.regions) != has_region:
            return None
        if not op.regions:
            return _native.OperationTemplate(head, None, "", "", _tail(op))
        (region,) = op.regions
        opening = "" if region.arguments is None else "):"
        return _native.OperationTemplate(f"{head} ({_start(region)}", region.arguments, opening, "})", _tail(op))

    def operation(self, offset: int) -> int:
        """Adds the pieces of the operation whose name is at `offset`. Returns its end. Raises AsmSyntaxError."""
        cursor = Cursor(self._text, offset)
        op, head = self._read(cursor)
        translated = self._translated
        translated.add_generated(head, offset)
        for region in op.regions:
            separator = " (" if region is op.regions[0] else ", "
            translated.add_generated(separator + _start(region), region.body[0])
            if region.arguments is not None:
                translated.translate(*region.arguments, self)
                translated.add_generated("):", region.arguments[1])
            translated.translate(*region.body, self)
            translated.add_generated("})" if region is op.regions[-1] else "}", region.body[1])
        translated.add_generated(_tail(op), cursor.position)
        return cursor.position

    def _read(self, cursor: Cursor) -> tuple[OperationText, str]:
        """Returns the operation at the cursor and its generic form up to its regions. Raises AsmSyntaxError."""
        start = cursor.position
        syntax, op_name, cursor.position = operation_at(cursor.text, start)
        definition = syntax.operations[op_name]
        if cursor.text[start] == '"':
            op = read_generic(cursor)
            op.attributes = {key: self.read_any(text) for key, text in op.attributes.items()}
        else:
            op = OperationReader(syntax, definition, cursor, self).read()
        self._add_type_runs(definition, op, start)
        return op, f'"{op_name}"({", ".join(op.operands)}){op.successors}'

    def _add_type_runs(self, definition: OpDef, op: OperationText, name: int) -> None:
        types = {model.OPERAND_LENGTHS: op.operand_types, model.RESULT_LENGTHS: op.result_types}
        for attribute in model.attribute_names(definition):
            try:
                lengths = _lengths_text(tuple(model.runs(types[attribute])))
            except model.TooManyRuns as error:
                raise AsmSyntaxError(name, str(error)) from None
            op.attributes[attribute] = self._alias_for(lengths)

    def read(self, syntax: DialectSyntax, mnemonic: str, cursor: Cursor) -> str:
        """Reads an attribute of a dialect at `cursor`, without its name; returns the host's text for it."""
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
        """Returns an attribute of any dialect on one line, with aliases for attributes of registered dialects in it."""
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
