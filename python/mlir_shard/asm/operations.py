# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parsing of operations in the custom syntax that their ODS assembly formats define."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlir_shard.asm.attributes import DialectSyntax
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, quoted
from mlir_shard.asm.generic import (
    OperationText,
    RegionText,
    read_dictionary,
    read_function_type,
    value_list,
)
from mlir_shard.ods.assembly_format import Custom, Directive, Element, Group, Literal, TypeOf, Variable
from mlir_shard.ods.model import AttributeArgument, OpDef, Operand, RegionDef, ResultDef, Variadicity

SYMBOL_NAME = "SymbolNameAttr"
STRIPPED_SHARDINGS = "StrippedTensorShardingPerValueAttr"
REGION = "SingleBlockRegionNoBlockId"


if TYPE_CHECKING:
    from mlir_shard.asm.to_host import Translation


@dataclass(slots=True)
class _Read:
    """The parts of an operation that have been read, by the names of its definition."""

    op: OperationText = field(default_factory=OperationText)
    operands: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, list[str]] = field(default_factory=dict)


class OperationReader:
    """A reader of one operation of the dialect in its custom syntax."""

    def __init__(self, syntax: DialectSyntax, op: OpDef, cursor: Cursor, translation: Translation) -> None:
        self._syntax = syntax
        self._op = op
        self._cursor = cursor
        self._translation = translation
        self._read = _Read()

    def read(self) -> OperationText:
        """Reads the parts of the operation at the cursor, which is after its name. Raises AsmSyntaxError."""
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
            for inner in element.then if self._is_present(element) else element.otherwise:
                self._element(inner)
        elif isinstance(element, Directive):
            if element.name == "attr-dict":
                given: dict[str, str] = {}
                if cursor.at("{"):
                    read_dictionary(cursor, given)
                for name, text in given.items():
                    read.op.attributes.setdefault(name, self._translation.read_any(text))
            elif element.name == "operands":
                read.op.operands = value_list(cursor)
            elif element.name == "functional-type":
                read_function_type(cursor, read.op)
            else:
                raise TypeError(f"the directive `{element.name}` in the format of {self._op.mnemonic} is not supported")

    def _is_present(self, group: Group) -> bool:
        first = group.first
        if isinstance(first, Literal):
            return self._cursor.at(first.text)
        argument = self._argument(first.name) if isinstance(first, Variable) else None
        if isinstance(argument, Operand):
            return self._cursor.at("%")
        if isinstance(argument, AttributeArgument) and argument.constraint.enum is not None:
            enum = self._syntax.definition.enum(argument.constraint.enum)
            return enum is not None and any(self._cursor.at(case.text) for case in enum.cases)
        raise TypeError(
            f"an optional group in the format of {self._op.mnemonic} begins with an element that cannot be optional"
        )

    def _argument(self, name: str) -> Operand | AttributeArgument | RegionDef:
        for argument in (*self._op.arguments, *self._op.regions):
            if argument.name == name:
                return argument
        raise TypeError(f"the format of {self._op.mnemonic} refers to `${name}`, which it does not have")

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
            return self._translation.read(self._syntax, constraint.attribute, cursor)
        if constraint.enum is not None:
            enum = self._syntax.definition.enum(constraint.enum)
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
        return self._translation.read_any(cursor.skip_attribute())

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
        """Reads a `sharding_per_value` without the angle brackets around its shardings; returns it as host text."""
        cursor = self._cursor
        if not cursor.at("["):
            raise cursor.error(f"expected '[' and a list of shardings, found {cursor.found()}")
        start, listed = cursor.position, cursor.skip_bracketed()
        try:
            return self._translation.read(self._syntax, "sharding_per_value", Cursor(f"<{listed}>"))
        except AsmSyntaxError as error:
            raise AsmSyntaxError(error.offset + start - 1, error.message) from None

    def _resolve_types(self) -> None:
        """Sets the types of operands and results, including those that the traits of the op determine."""
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
    """Returns the type of a typed attribute, the text after its `:`."""
    cursor = Cursor(text)
    cursor.skip_untyped_attribute()
    if not cursor.accept(":"):
        raise cursor.error("expected ':' and the type of the value")
    return text[cursor.position :].strip()


def _read_region_without_label(cursor: Cursor) -> RegionText:
    """Reads `(%arg: type, ...) { body }`: block arguments and a body of one block."""
    if not cursor.at("("):
        raise cursor.error(f"expected '(' and the arguments of the region, found {cursor.found()}")
    arguments = cursor.inside_brackets()
    if not cursor.at("{"):
        raise cursor.error(f"expected '{{' to begin the region, found {cursor.found()}")
    return RegionText(arguments, cursor.inside_brackets())
