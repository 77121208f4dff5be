# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translation of text that the host printed to text in the custom syntax of dialects.

The host prints the operations of a dialect defined at run time in generic form, and its attributes as strings.
Incomplete text, such as a diagnostic with an operation, is translated as far as possible.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from mlir_shard import _native
from mlir_shard.asm.attributes import SYNTAXES, SpacedText, operation_at, operation_names
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, as_bytes, as_text, unescape
from mlir_shard.asm.generic import (
    OperationText,
    RegionText,
    dictionary_text,
    function_type_text,
    read_generic,
)
from mlir_shard.asm.operations import REGION, SYMBOL_NAME
from mlir_shard.asm.sdy_syntax import symbol
from mlir_shard.ods import model
from mlir_shard.ods.assembly_format import Custom, Directive, Element, Group, Literal, TypeOf, Variable, Whitespace
from mlir_shard.ods.model import AttributeArgument, DialectDef, OpDef, Variadicity

_ATTRIBUTE = re.compile(r'#(\w+)\.(\w+)<"((?:[^"\\]|\\.)*)">')
# The placeholder of a part of the text. The host prints no NUL characters.
_PART = "\0"


def to_sdy_syntax(text: str, *, generic: bool = False) -> str:
    """Translates printed IR; with `generic`, operations stay in generic form, with properties in MLIR's syntax."""
    # One character for each byte: the scanner requires it, and escapes in the host's strings stand for bytes.
    return as_text(Translation(as_bytes(text), generic).result())


class Translation:
    """A translator of the distinct attributes and operations of a text, which native code inserts in their places."""

    def __init__(self, text: str, generic: bool) -> None:
        self._text = text
        self._generic = generic
        self._translated = _native.Translation(text, list(SYNTAXES), operation_names(), is_generic=True)

    def result(self) -> str:
        """Returns the text in the custom syntax of the dialects."""
        self._translated.translate(0, len(self._text), self)
        return self._translated.joined()

    def attribute(self, offset: int) -> tuple[str, int] | None:
        """Returns the translation of the attribute at `offset` and its end in the text; None if it is cut off."""
        match = _ATTRIBUTE.match(self._text, offset)
        return (_attribute(match[1], match[2], match[3]), match.end()) if match else None

    def abstract_operation(self, text: str, has_region: bool) -> _native.OperationTemplate | None:
        """Returns the translation of operations that differ only in the names of values; None to read each of them."""
        cursor = Cursor(text)
        read = self._read(cursor)
        # A region on one line is read together with its operation.
        if read is None or text[cursor.position :].strip() or len(read[0].regions) != has_region:
            return None
        op, printed = read
        if not op.regions:
            return _native.OperationTemplate(printed, None, "", "", "")
        before, *opening, behind = printed.split(_PART)
        return _native.OperationTemplate(before, op.regions[0].arguments, "".join(opening), "", behind)

    def operation(self, offset: int) -> int | None:
        """Adds the pieces of the operation whose name is at `offset`. Returns its end; None if it is cut off."""
        cursor = Cursor(self._text, offset)
        read = self._read(cursor)
        if read is None:
            return None
        op, printed = read
        parts = [part for region in op.regions for part in (region.arguments, region.body) if part is not None]
        before, *behind = printed.split(_PART)
        self._translated.add_generated(before, offset)
        for part, text in zip(parts, behind, strict=True):
            self._translated.translate(*part, self)
            self._translated.add_generated(text, part[1])
        return cursor.position

    def _read(self, cursor: Cursor) -> tuple[OperationText, str] | None:
        """Returns the operation at the cursor and its text, with `_PART` for its regions; None if it is cut off."""
        start = cursor.position
        syntax, op_name, cursor.position = operation_at(cursor.text, start)
        definition = syntax.operations[op_name]
        try:
            op = read_generic(cursor)
        except AsmSyntaxError:
            return None  # cut off, as in a diagnostic that leaves regions out
        for hidden in model.attribute_names(definition):
            op.attributes.pop(hidden, None)
        if self._generic or not _is_printable(definition, op):
            return op, _generic_operation(cursor.text, op_name, definition, op)
        return op, OperationPrinter(syntax.definition, definition, op, _region).print()


def _region(region: RegionText) -> str:
    arguments = _PART if region.arguments else ""
    return f"({arguments}) {{{_PART}}}"


def _generic_operation(source: str, op_name: str, definition: OpDef, op: OperationText) -> str:
    inherent = {argument.name for argument in definition.attributes}
    properties = {name: to_attributes(text) for name, text in op.attributes.items() if name in inherent}
    discardable = {name: to_attributes(text) for name, text in op.attributes.items() if name not in inherent}
    text = f'"{op_name}"({", ".join(op.operands)}){op.successors}'
    if properties:
        text += f" <{dictionary_text(properties)}>"
    if op.regions:
        text += f" ({', '.join(_generic_region(source, region) for region in op.regions)})"
    if discardable:
        text += f" {dictionary_text(discardable)}"
    return f"{text} : {function_type_text(op.operand_types, op.result_types)}"


def _generic_region(source: str, region: RegionText) -> str:
    if region.arguments is None:
        return f"{{{_PART}}}"
    indentation = source.rfind("\n", 0, region.arguments[0])
    label = source[indentation : region.arguments[0]].split("^")[0]
    return f"{{{label}^bb0({_PART}):{_PART}}}"


def _is_printable(definition: OpDef, op: OperationText) -> bool:
    """Returns whether the operation has all parts of its custom syntax; an invalid operation may lack some."""
    if any(argument.required and argument.name not in op.attributes for argument in definition.attributes):
        return False
    variadic = any(operand.variadicity is not Variadicity.SINGLE for operand in definition.operands)
    if not variadic and len(op.operands) != len(definition.operands):
        return False
    if any(region.arguments is not None and region.arguments[0] == region.arguments[1] for region in op.regions):
        return False
    return len(op.regions) == len(definition.regions)


@cache
def _attribute(namespace: str, mnemonic: str, escaped: str) -> str:
    return SYNTAXES[namespace].named_attribute(mnemonic, unescape(escaped))


def to_attributes(text: str) -> str:
    """Returns the text of an attribute, with the attributes of registered dialects in it in their custom syntax."""
    return _ATTRIBUTE.sub(
        lambda m: _attribute(m[1], m[2], m[3]) if m[1] in SYNTAXES else m[0],
        text,
    )


def _attribute_of(mnemonic: str, text: str) -> str:
    """Returns the custom syntax, without name, of an attribute that the host printed; other text as it is."""
    match = _ATTRIBUTE.fullmatch(text.strip())
    return unescape(match[3]) if match and match[2] == mnemonic else text


class OperationPrinter:
    """A printer of one operation of the dialect in its custom syntax."""

    def __init__(
        self, dialect: DialectDef, op: OpDef, text: OperationText, region: Callable[[RegionText], str]
    ) -> None:
        self._dialect = dialect
        self._op = op
        self._text = text
        self._region = region
        self._out = SpacedText()
        self._printed: set[str] = set()

    def print(self) -> str:
        """Returns the custom syntax, from the name of the operation on."""
        elements = self._op.assembly_format or ()
        self._find_printed(elements)
        for element in elements:
            self._element(element)
        return f"{self._dialect.name}.{self._op.mnemonic}{self._out}"

    def _find_printed(self, elements: tuple[Element, ...]) -> None:
        """Collects the attributes that the format prints, which are therefore omitted from the dictionary."""
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
            for inner in element.branch(self._is_present(element.anchor_element)):
                self._element(inner)
        elif element.name == "attr-dict":
            rest = {
                name: to_attributes(text) for name, text in self._text.attributes.items() if name not in self._printed
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
        """Returns whether an enum attribute has its default value, and is therefore not printed."""
        if argument.default is None or argument.constraint.enum is None:
            return False
        enum = self._dialect.enum(argument.constraint.enum)
        case = enum.case(str(argument.default_value)) if enum else None
        return case is not None and text.split(":")[0].strip() == str(case.value)

    def _values_of(self, name: str, values: list[str]) -> list[str]:
        """Returns the part of `values`, operands or their types, that belongs to the operand `name`."""
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
            return _attribute_of(constraint.attribute, text)
        if constraint.enum is not None:
            enum = self._dialect.enum(constraint.enum)
            case = enum.case(int(text.split(":")[0])) if enum else None
            return case.text if case else text
        if constraint.name == SYMBOL_NAME:
            return symbol(as_text(unescape(text.strip()[1:-1])))
        if constraint.value_type is not None and constraint.value_type != "none":
            return text.split(":")[0].strip()
        return to_attributes(text)

    def _custom(self, element: Custom) -> str:
        if element.name == REGION:
            return self._region(self._text.regions[0])
        name = element.arguments[0].name if isinstance(element.arguments[0], Variable) else ""
        per_value = _attribute_of("sharding_per_value", self._text.attributes[name])
        return per_value[1:-1]
