# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attribute values of a dialect, parsed and printed in the assembly formats of its ODS definitions.

Spaces follow the rules of MLIR's own printers. The dialects whose syntax is translated are registered here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, quoted
from mlir_shard.ods.assembly_format import Custom, Element, Group, Literal, Variable, Whitespace
from mlir_shard.ods.model import AttrDef, DialectDef, OpDef, ParameterDef, attribute_names


class SpacedText:
    """A text that is assembled element by element, with spaces between elements."""

    __slots__ = ("_emit_space", "_last_was_punctuation", "_parts")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._emit_space = True
        self._last_was_punctuation = False

    def literal(self, text: str) -> None:
        """Adds a keyword or punctuation of the format."""
        if self._emit_space and self._takes_space(text):
            self._parts.append(" ")
        self._parts.append(text)
        self._emit_space = len(text) != 1 or text not in "<({["
        self._last_was_punctuation = not (text[0] == "_" or text[0].isalpha())

    def _takes_space(self, text: str) -> bool:
        if len(text) != 1 and text != "->":
            return True
        return text not in (">)}]," if self._last_was_punctuation else "<>(){}[],")

    def whitespace(self, text: str) -> None:
        """Adds the white space that the format specifies; empty text suppresses the space that would follow."""
        self._parts.append(text)
        self._emit_space = False
        self._last_was_punctuation = not text

    def element(self, text: str) -> None:
        """Adds a variable or a directive."""
        if self._emit_space or not self._last_was_punctuation:
            self._parts.append(" ")
        self._parts.append(text)
        self._emit_space = True
        self._last_was_punctuation = False

    def dictionary(self, text: str) -> None:
        """Adds an attribute dictionary with a space in front of it; adds nothing if it is empty."""
        if text:
            self._parts.append(f" {text}")
        self._last_was_punctuation = False

    def __str__(self) -> str:
        return "".join(self._parts)


Aliases = Callable[[str], Any]
"""Returns the value of an attribute alias by its name without `#`; raises KeyError if it is not defined."""


class CustomSyntax(Protocol):
    """The syntax of the parameters of a `custom<...>` directive."""

    def parse(self, reader: AttributeReader, arguments: tuple[str, ...]) -> dict[str, Any]:
        """Reads the parameters at `reader.cursor`."""

    def print(self, syntax: DialectSyntax, value: Any, arguments: tuple[str, ...]) -> str:
        """Prints the parameters of `value`."""


class PlainSyntax(NamedTuple):
    """Functions that read and print the common texts of an attribute as its assembly format does.

    `read(text, position)` returns the value and its end, `printed(value)` its text, or None to use the format.
    """

    read: Callable[[str, int], tuple[Any, int] | None]
    printed: Callable[[Any], str | None]


@dataclass(frozen=True)
class DialectSyntax:
    """The custom syntax of a dialect.

    Attributes:
        value_types: the classes of attribute values by mnemonic, and of enums by name.
        custom: the syntax of `custom` directives by name.
        checks: further checks of parsed values by mnemonic: each returns an error message, or None.
        plain: the syntax of common texts by mnemonic.
    """

    definition: DialectDef
    value_types: Mapping[str, type]
    custom: Mapping[str, CustomSyntax]
    checks: Mapping[str, Callable[[Any], str | None]] = field(default_factory=dict)
    plain: Mapping[str, PlainSyntax] = field(default_factory=dict)
    _printed: dict[tuple[str, Any], str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def operations(self) -> Mapping[str, OpDef]:
        """The operations by their full names."""
        return {f"{self.definition.name}.{op.mnemonic}": op for op in self.definition.ops}

    def parse(self, mnemonic: str, cursor: Cursor, aliases: Aliases | None = None) -> Any:
        """Parses the attribute `mnemonic` at `cursor`, without `#dialect.mnemonic`. Raises AsmSyntaxError."""
        return AttributeReader(self, cursor, aliases).attribute(mnemonic)

    def print(self, mnemonic: str, value: Any) -> str:
        """Prints a value of the attribute `mnemonic`, without `#dialect.mnemonic`."""
        plain = self.plain.get(mnemonic)
        if plain is not None and (printed := plain.printed(value)) is not None:
            return printed
        definition, text = self.attribute(mnemonic), SpacedText()
        for element in definition.assembly_format or ():
            self._print_element(definition, element, value, text)
        return str(text).lstrip(" ")

    def attribute(self, mnemonic: str) -> AttrDef:
        """Returns the definition of the attribute `mnemonic`. Raises KeyError if none exists."""
        found = self.definition.attribute(mnemonic)
        if found is None:
            raise KeyError(mnemonic)
        return found

    def read_named_attribute(self, cursor: Cursor, aliases: Aliases | None) -> tuple[str, Any]:
        """Parses `#dialect.mnemonic...` or `#dialect<mnemonic...>`; returns the mnemonic and the value."""
        name = self.definition.name
        cursor.expect("#")
        cursor.expect(name)
        pretty = cursor.accept(".")
        if not pretty:
            cursor.expect("<")
        cursor.skip_space()
        start = cursor.position
        mnemonic = cursor.identifier() or ""
        if self.definition.attribute(mnemonic) is None:
            near = difflib.get_close_matches(mnemonic, [a.mnemonic for a in self.definition.attributes])
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise cursor.error(f"the {name} dialect has no attribute '{mnemonic}'{hint}", start)
        value = self.parse(mnemonic, cursor, aliases)
        if not pretty:
            cursor.expect(">")
        return mnemonic, value

    def named_attribute(self, mnemonic: str, text: str) -> str:
        """Returns `text`, the value of an attribute, with the attribute's name in front of it, as MLIR prints it."""
        namespace = self.definition.name
        return f"#{namespace}.{mnemonic}{text}" if text.startswith("<") else f"#{namespace}<{mnemonic}{text}>"

    def _print_element(self, definition: AttrDef, element: Element, value: Any, text: SpacedText) -> None:
        if isinstance(element, Literal):
            text.literal(element.text)
        elif isinstance(element, Whitespace):
            text.whitespace(element.text)
        elif isinstance(element, Variable):
            parameter, given = definition.parameter(element.name), getattr(value, element.name)
            listed = given if parameter.array else (given,)
            text.element(", ".join(self._parameter(parameter, one) for one in listed))
        elif isinstance(element, Custom):
            text.element(self.custom[element.name].print(self, value, argument_names(element)))
        elif isinstance(element, Group):
            anchor = element.anchor_element
            if not isinstance(anchor, Variable):
                raise TypeError("the anchor of an attribute format has to be a parameter")
            for inner in element.branch(getattr(value, anchor.name) not in (None, ())):
                self._print_element(definition, inner, value, text)

    def _nested(self, mnemonic: str, value: Any) -> str:
        # Attributes have few distinct parts, such as the shardings of dimensions.
        found = self._printed.get((mnemonic, value))
        if found is None:
            if len(self._printed) >= _MOST_PRINTED:
                self._printed.clear()
            found = self._printed[mnemonic, value] = self.print(mnemonic, value)
        return found

    def _parameter(self, parameter: ParameterDef, value: Any) -> str:
        if parameter.attribute is not None:
            return self._nested(parameter.attribute, value)
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return quoted(value) if isinstance(value, str) else str(value)


_MOST_PRINTED = 4096
"""The texts of parts of attributes that a syntax caches: beyond that all are evicted."""

SYNTAXES: dict[str, DialectSyntax] = {}
"""The registered syntaxes, by dialect name."""


def register(syntax: DialectSyntax) -> None:
    """Registers the syntax of a dialect, whose text is translated from now on; replaces an earlier registration."""
    SYNTAXES[syntax.definition.name] = syntax


def operation_names() -> set[str]:
    """Returns the names of the operations of all registered dialects."""
    return {name for syntax in SYNTAXES.values() for name in syntax.operations}


def hidden_attributes() -> list[tuple[str, list[str]]]:
    """Returns the names of operations with attributes that are not printed, each with the names of these attributes."""
    operations = [item for syntax in SYNTAXES.values() for item in syntax.operations.items()]
    return [(name, hidden) for name, op in operations if (hidden := attribute_names(op))]


_OPERATION_NAME = re.compile(r'"?((\w+)\.[\w$.]+)"?')


def operation_at(text: str, offset: int) -> tuple[DialectSyntax, str, int]:
    """Returns the dialect syntax and the name of the operation at `offset`, and the end of the name in the text."""
    match = _OPERATION_NAME.match(text, offset)
    assert match is not None
    return SYNTAXES[match[2]], match[1], match.end()


class AttributeReader:
    """A reader of attribute values at a cursor."""

    def __init__(self, syntax: DialectSyntax, cursor: Cursor, aliases: Aliases | None) -> None:
        self.syntax = syntax
        self.cursor = cursor
        self._aliases = aliases

    def attribute(self, mnemonic: str) -> Any:
        """Reads the attribute `mnemonic`, or an alias of one."""
        cursor = self.cursor
        if cursor.at("#"):
            return self._named_attribute(mnemonic)
        cursor.skip_space()
        start = cursor.position
        plain = self.syntax.plain.get(mnemonic)
        if plain is not None and (found := plain.read(cursor.text, start)) is not None:
            known, cursor.position = found
            return known
        definition = self.syntax.attribute(mnemonic)
        parameters: dict[str, Any] = {}
        for element in definition.assembly_format or ():
            self._element(definition, element, parameters)
        for parameter in definition.parameters:
            if parameter.name not in parameters:
                parameters[parameter.name] = () if parameter.array else None
        value = self.syntax.value_types[mnemonic](**parameters)
        check = self.syntax.checks.get(mnemonic)
        problem = check(value) if check else None
        if problem:
            raise AsmSyntaxError(start, problem)
        return value

    def _named_attribute(self, mnemonic: str) -> Any:
        cursor = self.cursor
        start = cursor.position
        cursor.expect("#")
        name = cursor.dotted_identifier() or ""
        namespace = self.syntax.definition.name
        if name == f"{namespace}.{mnemonic}":
            return self.attribute(mnemonic)
        try:
            value = self._aliases(name) if self._aliases else None
        except KeyError:
            value = None
        if value is None:
            raise AsmSyntaxError(start, f"expected an attribute '#{namespace}.{mnemonic}', found '#{name}'")
        return value

    def _element(self, definition: AttrDef, element: Element, parameters: dict[str, Any]) -> None:
        if isinstance(element, Literal):
            self.cursor.expect(element.text)
        elif isinstance(element, Variable):
            parameter = definition.parameter(element.name)
            read = partial(self.parameter, parameter)
            parameters[element.name] = tuple(self.cursor.separated(read)) if parameter.array else read()
        elif isinstance(element, Custom):
            parameters.update(self.syntax.custom[element.name].parse(self, argument_names(element)))
        elif isinstance(element, Group):
            first = element.first
            if not isinstance(first, Literal):
                raise TypeError("an optional group of an attribute format has to begin with a literal")
            for inner in element.then if self.cursor.at(first.text) else element.otherwise:
                self._element(definition, inner, parameters)

    def parameter(self, parameter: ParameterDef) -> Any:
        """Reads a parameter, or one element of an array."""
        cursor = self.cursor
        if parameter.attribute is not None:
            return self.attribute(parameter.attribute)
        if parameter.enum is not None:
            return self.enum(parameter.enum)
        if "StringRef" in parameter.cpp_type or "string" in parameter.cpp_type or "StringAttr" in parameter.cpp_type:
            return cursor.required(cursor.string(), f"a string for '{parameter.name}'")
        if parameter.cpp_type == "bool":
            word = cursor.identifier()
            if word not in ("true", "false"):
                raise cursor.error(f"expected true or false for '{parameter.name}'")
            return word == "true"
        return self.integer(parameter.name)

    def integer(self, name: str) -> int:
        """Reads an integer of 64 bits."""
        start, number = self.cursor.located(self.cursor.integer, f"an integer for '{name}'")
        if not -(2**63) <= number < 2**63:
            raise AsmSyntaxError(start, f"{number} does not fit in the 64 bits of '{name}'")
        return number

    def enum(self, name: str) -> Enum:
        """Reads a keyword of the enum `name`; returns its case."""
        definition = self.syntax.definition.enum(name)
        if definition is None:
            raise KeyError(name)
        word = self.cursor.identifier()
        case = definition.case(word) if word else None
        if case is None:
            known = ", ".join(case.text for case in definition.cases)
            raise self.cursor.error(f"expected one of {known}, found {word or self.cursor.found()}")
        return self.syntax.value_types[name](case.text if isinstance(case.text, str) else case.value)


def argument_names(element: Custom) -> tuple[str, ...]:
    """Returns the arguments of a `custom` directive: the names of parameters, and strings without quotes."""
    return tuple(
        argument.name if isinstance(argument, Variable) else str(argument).strip('"') for argument in element.arguments
    )
