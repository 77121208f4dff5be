# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations read and printed in the custom syntax that their ODS assembly formats give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mlir_shard.asm.attributes import SpacedText
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, as_text, quoted, unescape
from mlir_shard.asm.generic import (
    OperationText,
    RegionText,
    dictionary_text,
    function_type_text,
    read_dictionary,
    read_function_type,
    value_list,
)
from mlir_shard.asm.sdy_syntax import symbol
from mlir_shard.ods.assembly_format import Custom, Directive, Element, Group, Literal, TypeOf, Variable, Whitespace
from mlir_shard.ods.model import AttributeArgument, DialectDef, OpDef, Operand, RegionDef, ResultDef, Variadicity

SYMBOL_NAME = "SymbolNameAttr"
STRIPPED_SHARDINGS = "StrippedTensorShardingPerValueAttr"
REGION = "SingleBlockRegionNoBlockId"


class AttributesForHost(Protocol):
    """How attributes are written for the host."""

    def read(self, mnemonic: str, cursor: Cursor) -> str:
        """The host's text for the attribute of the dialect that stands at `cursor` without its name."""

    def read_any(self, text: str) -> str:
        """The host's text for an attribute in MLIR syntax."""


@dataclass(slots=True)
class _Read:
    """What has been read of an operation, by the names of its definition."""

    op: OperationText = field(default_factory=OperationText)
    operands: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, list[str]] = field(default_factory=dict)


class OperationReader:
    """Reads one operation of the dialect in its custom syntax."""

    def __init__(self, dialect: DialectDef, op: OpDef, cursor: Cursor, attributes: AttributesForHost) -> None:
        self._dialect = dialect
        self._op = op
        self._cursor = cursor
        self._attributes = attributes
        self._read = _Read()

    def read(self) -> OperationText:
        """The parts of the operation that stands at the cursor, behind its name. Raises AsmSyntaxError."""
        for element in self._op.assembly_format or ():
            self._element(element)
        read = self._read
        if not read.op.operands:
            read.op.operands = [name for operand in self._op.operands for name in read.operands.get(operand.name, ())]
        self._resolve_types()
        return read.op

    def _element(self, element: Element) -> None:
        cursor, read = self._cursor, self._read
        if isinstance(element, Literal):
            cursor.expect(element.text)
        elif isinstance(element, Variable):
            self._variable(element.name)
        elif isinstance(element, TypeOf):
            self._types(element)
        elif isinstance(element, Custom):
            self._custom(element)
        elif isinstance(element, Group):
            for inner in element.then if self._is_present(element.then) else element.otherwise:
                self._element(inner)
        elif isinstance(element, Directive):
            if element.name == "attr-dict":
                if cursor.at("{"):
                    given: dict[str, str] = {}
                    read_dictionary(cursor, given)
                    for name, text in given.items():
                        read.op.attributes.setdefault(name, self._attributes.read_any(text))
            elif element.name == "operands":
                read.op.operands = value_list(cursor)
            elif element.name == "functional-type":
                read_function_type(cursor, read.op)
            else:
                raise TypeError(f"the directive `{element.name}` in the format of {self._op.mnemonic} is not supported")

    def _is_present(self, elements: tuple[Element, ...]) -> bool:
        first = next(element for element in elements if not isinstance(element, Whitespace))
        if isinstance(first, Literal):
            return self._cursor.at(first.text)
        argument = self._argument(first.name) if isinstance(first, Variable) else None
        if isinstance(argument, Operand):
            return self._cursor.at("%")
        if isinstance(argument, AttributeArgument) and argument.constraint.enum is not None:
            enum = self._dialect.enum(argument.constraint.enum)
            return enum is not None and any(self._cursor.at(case.text) for case in enum.cases)
        raise TypeError(f"an optional group in the format of {self._op.mnemonic} begins with what cannot be looked for")

    def _argument(self, name: str) -> Operand | AttributeArgument | RegionDef:
        for argument in (*self._op.arguments, *self._op.regions):
            if argument.name == name:
                return argument
        raise TypeError(f"the format of {self._op.mnemonic} names `${name}`, which it does not have")

    def _variable(self, name: str) -> None:
        argument = self._argument(name)
        cursor, read = self._cursor, self._read
        if isinstance(argument, AttributeArgument):
            read.op.attributes[name] = self._attribute(argument)
        elif isinstance(argument, Operand):
            if argument.variadicity is Variadicity.VARIADIC:
                read.operands[name] = value_list(cursor)
            else:
                read.operands[name] = [cursor.required(cursor.value_name(), f"an SSA operand for '{name}'")]
        else:
            raise TypeError(f"the format of {self._op.mnemonic} prints region `${name}` without a directive")

    def _attribute(self, argument: AttributeArgument) -> str:
        cursor, constraint = self._cursor, argument.constraint
        if constraint.attribute is not None:
            return self._attributes.read(constraint.attribute, cursor)
        if constraint.enum is not None:
            enum = self._dialect.enum(constraint.enum)
            word = cursor.identifier()
            case = enum.case(word) if enum and word else None
            if enum is None or case is None:
                known = ", ".join(one.text for one in enum.cases) if enum else ""
                raise cursor.error(f"expected one of {known} for '{argument.name}', found '{word or cursor.found()}'")
            return f"{case.value} : i{enum.width}"
        if constraint.name == SYMBOL_NAME:
            return quoted(cursor.required(cursor.symbol(), f"a symbol name '@{argument.name}'"))
        if constraint.value_type is not None and constraint.value_type != "none":
            number = cursor.required(cursor.integer(), f"an integer for '{argument.name}'")
            return f"{number} : {constraint.value_type}"
        if constraint.value_type == "none":
            return quoted(cursor.required(cursor.string(), f"a string for '{argument.name}'"))
        return self._attributes.read_any(cursor.skip_attribute())

    def _types(self, element: TypeOf) -> None:
        if not isinstance(element.argument, Variable):
            self._read.op.operand_types = self._cursor.type_list()
            return
        name = element.argument.name
        values: tuple[Operand | ResultDef, ...] = (*self._op.operands, *self._op.results)
        variadic = any(value.name == name and value.variadicity is Variadicity.VARIADIC for value in values)
        self._read.types[name] = self._cursor.type_list() if variadic else [self._cursor.skip_type()]

    def _custom(self, element: Custom) -> None:
        cursor, read = self._cursor, self._read
        if element.name == REGION:
            read.op.regions.append(_read_region_without_label(cursor))
        elif element.name == STRIPPED_SHARDINGS and isinstance(element.arguments[0], Variable):
            read.op.attributes[element.arguments[0].name] = self._stripped_shardings()
        else:
            raise TypeError(f"the directive `custom<{element.name}>` of {self._op.mnemonic} is not known")

    def _stripped_shardings(self) -> str:
        """The shardings of `sharding_per_value` without the angle brackets around them."""
        cursor = self._cursor
        if not cursor.at("["):
            raise cursor.error(f"expected '[' and a list of shardings, found {cursor.found()}")
        start = cursor.position
        close = cursor.closing()
        try:
            text = self._attributes.read("sharding_per_value", Cursor(f"<{cursor.text[start : close + 1]}>"))
        except AsmSyntaxError as error:
            raise AsmSyntaxError(error.offset + start - 1, error.message) from None
        cursor.position = close + 1
        return text

    def _resolve_types(self) -> None:
        """Fills in the types that the format leaves to the traits of the op."""
        op, read = self._op, self._read
        for value in op.operands:
            read.op.operand_types += read.types.get(value.name, [])
        for result in op.results:
            read.op.result_types += read.types.get(result.name, [])
        if op.has_trait("SameOperandsAndResultType"):
            (known,) = {*read.op.operand_types, *read.op.result_types}
            read.op.operand_types = [known] * len(read.op.operands)
            read.op.result_types = [known] * len(op.results)
        elif op.results and not read.op.result_types and op.has_trait("AllTypesMatch"):
            names = _matching_names(op)
            attribute = next(a.name for a in op.attributes if a.name in names)
            read.op.result_types = [type_of_attribute(read.op.attributes[attribute])]


def _matching_names(op: OpDef) -> tuple[str, ...]:
    trait = op.trait("AllTypesMatch")
    names = trait.arguments[0] if trait else ()
    return tuple(str(name) for name in names) if isinstance(names, tuple) else (str(names),)


def type_of_attribute(text: str) -> str:
    """The type of a typed attribute: what follows its last `:`."""
    cursor = Cursor(text)
    cursor.skip_attribute()
    depth, start = 0, -1
    for i, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}" and text[i - 1] != "-":
            depth -= 1
        elif character == ":" and depth == 0:
            start = i
    if start < 0:
        raise cursor.error("expected ':' and the type of the value")
    return text[start + 1 :].strip()


def _read_region_without_label(cursor: Cursor) -> RegionText:
    """`(%arg: type, ...) { body }`: block arguments and a body of one block."""
    if not cursor.at("("):
        raise cursor.error(f"expected '(' and the arguments of the region, found {cursor.found()}")
    close = cursor.closing()
    arguments = (cursor.position + 1, close)
    cursor.position = close + 1
    if not cursor.at("{"):
        raise cursor.error(f"expected '{{' to begin the region, found {cursor.found()}")
    end = cursor.closing()
    body = (cursor.position + 1, end)
    cursor.position = end + 1
    return RegionText(arguments, body)


class AttributesForUser(Protocol):
    """How attributes that the host wrote are shown to the user."""

    def print(self, mnemonic: str, text: str) -> str:
        """The syntax, without its name, of an attribute of the dialect."""

    def print_any(self, text: str) -> str:
        """The syntax of any attribute."""


class OperationPrinter:
    """Prints one operation of the dialect in its custom syntax."""

    def __init__(
        self,
        dialect: DialectDef,
        op: OpDef,
        text: OperationText,
        attributes: AttributesForUser,
        region: Callable[[RegionText], str],
    ) -> None:
        self._dialect = dialect
        self._op = op
        self._text = text
        self._attributes = attributes
        self._region = region
        self._out = SpacedText()
        self._printed: set[str] = set()

    def print(self) -> str:
        """The custom syntax, from the name of the operation on."""
        elements = self._op.assembly_format or ()
        self._find_printed(elements)
        for element in elements:
            self._element(element)
        return f"{self._dialect.name}.{self._op.mnemonic}{self._out}"

    def _find_printed(self, elements: tuple[Element, ...]) -> None:
        """Collects the attributes that the format shows, which the dictionary therefore leaves out."""
        for element in elements:
            if isinstance(element, Variable):
                self._printed.add(element.name)
            elif isinstance(element, Custom):
                self._printed.update(a.name for a in element.arguments if isinstance(a, Variable))
            elif isinstance(element, Group):
                self._find_printed(element.then)
                self._find_printed(element.otherwise)

    def _element(self, element: Element) -> None:
        out = self._out
        if isinstance(element, Literal):
            out.literal(element.text)
        elif isinstance(element, Whitespace):
            out.whitespace(element.text)
        elif isinstance(element, Variable):
            out.element(self._variable(element.name))
        elif isinstance(element, TypeOf):
            out.element(", ".join(self._types_of(element.argument)))
        elif isinstance(element, Custom):
            out.element(self._custom(element))
        elif isinstance(element, Group):
            chosen = self._is_present(element.anchor_element) == (element.anchor_branch == "then")
            for inner in element.then if chosen else element.otherwise:
                self._element(inner)
        elif element.name == "attr-dict":
            rest = {
                name: self._attributes.print_any(text)
                for name, text in self._text.attributes.items()
                if name not in self._printed
            }
            out.dictionary(dictionary_text(rest))
        elif element.name == "operands":
            out.element(", ".join(self._text.operands))
        elif element.name == "functional-type":
            out.element(function_type_text(self._text.operand_types, self._text.result_types))

    def _is_present(self, anchor: Element) -> bool:
        shown = anchor.arguments[0] if isinstance(anchor, Custom) else anchor
        name = shown.name if isinstance(shown, Variable) else ""
        for argument in self._op.attributes:
            if argument.name == name:
                text = self._text.attributes.get(name)
                return text is not None and not self._is_default(argument, text)
        return bool(self._values_of(name, self._text.operands))

    def _is_default(self, argument: AttributeArgument, text: str) -> bool:
        """Whether an attribute has its default value, and so need not be shown."""
        if argument.default is None or argument.constraint.enum is None:
            return False
        enum = self._dialect.enum(argument.constraint.enum)
        case = enum.case(str(argument.default_value)) if enum else None
        return case is not None and text.split(":")[0].strip() == str(case.value)

    def _values_of(self, name: str, values: list[str]) -> list[str]:
        """The part of `values`, operands or their types, that the operand `name` stands for."""
        index = next(i for i, operand in enumerate(self._op.operands) if operand.name == name)
        if any(operand.variadicity is not Variadicity.SINGLE for operand in self._op.operands):
            return values
        return values[index : index + 1]

    def _types_of(self, argument: Variable | Directive) -> list[str]:
        if not isinstance(argument, Variable):
            return self._text.operand_types
        if any(operand.name == argument.name for operand in self._op.operands):
            return self._values_of(argument.name, self._text.operand_types)
        return self._text.result_types

    def _variable(self, name: str) -> str:
        for argument in self._op.attributes:
            if argument.name == name:
                return self._attribute(argument, self._text.attributes[name])
        return ", ".join(self._values_of(name, self._text.operands))

    def _attribute(self, argument: AttributeArgument, text: str) -> str:
        constraint = argument.constraint
        if constraint.attribute is not None:
            return self._attributes.print(constraint.attribute, text)
        if constraint.enum is not None:
            enum = self._dialect.enum(constraint.enum)
            case = enum.case(int(text.split(":")[0])) if enum else None
            return case.text if case else text
        if constraint.name == SYMBOL_NAME:
            return symbol(as_text(unescape(text.strip()[1:-1])))
        if constraint.value_type is not None and constraint.value_type != "none":
            return text.split(":")[0].strip()
        return self._attributes.print_any(text)

    def _custom(self, element: Custom) -> str:
        if element.name == REGION:
            return self._region(self._text.regions[0])
        name = element.arguments[0].name if isinstance(element.arguments[0], Variable) else ""
        per_value = self._attributes.print("sharding_per_value", self._text.attributes[name])
        return per_value[1:-1]
