# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations printed in the custom syntax that their ODS assembly formats give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mlir_shard.asm.cursor import as_text, unescape
from mlir_shard.asm.generic import OperationText, RegionText, dictionary_text, function_type_text
from mlir_shard.asm.operation_reader import REGION, SYMBOL_NAME
from mlir_shard.asm.sdy_syntax import symbol
from mlir_shard.asm.spacing import SpacedText
from mlir_shard.ods.assembly_format import Custom, Directive, Element, Group, Literal, TypeOf, Variable, Whitespace
from mlir_shard.ods.model import AttributeArgument, DialectDef, OpDef, Variadicity


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
