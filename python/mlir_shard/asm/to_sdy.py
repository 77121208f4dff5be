# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From text that the host printed to text in dialects' own syntax.

The host prints the operations of a dialect defined at run time in generic form, and its attributes as strings. Text
that holds only parts of what the host printed, such as a diagnostic with an operation, is translated as far as it goes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from mlir_shard import _native
from mlir_shard.asm.attributes import SYNTAXES, DialectSyntax, SpacedText
from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, as_bytes, as_text, unescape
from mlir_shard.asm.generic import (
    OperationText,
    RegionText,
    Span,
    dictionary_text,
    function_type_text,
    is_quoted_operation,
    read_generic,
)
from mlir_shard.asm.op_templates import AbstractOperation, abstract_operation, split_at_values
from mlir_shard.asm.operations import REGION, SYMBOL_NAME
from mlir_shard.asm.sdy_syntax import symbol
from mlir_shard.ods import model
from mlir_shard.ods.assembly_format import Custom, Directive, Element, Group, Literal, TypeOf, Variable, Whitespace
from mlir_shard.ods.model import AttributeArgument, DialectDef, OpDef, Variadicity

_ATTRIBUTE = re.compile(r'#(\w+)\.(\w+)<"((?:[^"\\]|\\.)*)">')
_OPERATION = re.compile(r'"((\w+)\.[\w$.]+)"(?=\()')


def to_sdy_syntax(text: str, *, generic: bool = False) -> str:
    """Translates printed IR; with `generic`, operations stay in generic form, with properties as MLIR prints them."""
    # One character a byte: that is what the scanner takes, and what the escapes in the host's strings stand for.
    characters = as_bytes(text)
    names = _native.find_names(characters, list(SYNTAXES))
    if not names:
        return text
    translated = _Translation(characters, names, generic).span(0, len(characters))
    return as_text(translated)


class _Translation:
    def __init__(self, text: str, names: list[int], generic: bool) -> None:
        self._text = text
        self._names = names
        self._generic = generic
        self._templates: dict[str, _Template | None] = {}

    def span(self, start: int, end: int) -> str:
        """The translation of a part of the text."""
        text, names = self._text, self._names
        parts = []
        index = bisect_left(names, start)
        while index < len(names) and names[index] < end:
            name = names[index]
            replacement, after = self._attribute(name) if text[name] == "#" else self._operation(name)
            if after > name:
                parts += [text[start:name], replacement]
                start = after
            index = bisect_left(names, max(start, name + 1), index)
        parts.append(text[start:end])
        return "".join(parts)

    def _attribute(self, name: int) -> tuple[str, int]:
        match = _ATTRIBUTE.match(self._text, name)
        return (_attribute(match[1], match[2], match[3]), match.end()) if match else ("", name)

    def _operation(self, name: int) -> tuple[str, int]:
        match = _OPERATION.match(self._text, name)
        syntax = SYNTAXES.get(match[2]) if match else None
        definition = syntax.operations.get(match[1]) if match and syntax else None
        if match is None or syntax is None or definition is None or not is_quoted_operation(self._text, name):
            return "", name
        found = None if self._generic else abstract_operation(self._text, name)
        template = None if found is None else self._template_of(found, match.end() - name, syntax, definition)
        if found is not None and template is not None:
            return self._filled(template, found), found.end
        cursor = Cursor(self._text, match.end())
        try:
            op = read_generic(cursor)
        except AsmSyntaxError:
            return "", name  # cut off, as in a diagnostic that leaves regions out
        for hidden in model.attribute_names(definition):
            op.attributes.pop(hidden, None)
        if self._generic or not _is_printable(definition, op):
            return self._generic_operation(match[0], definition, op), cursor.position
        printer = OperationPrinter(syntax.definition, definition, op, self._region)
        return printer.print(), cursor.position

    def _template_of(
        self, found: AbstractOperation, name_length: int, syntax: DialectSyntax, definition: OpDef
    ) -> _Template | None:
        """Returns the translation of an operation, whatever the names of its values; None if it has to be read."""
        if found.text not in self._templates:
            self._templates[found.text] = _made_template(found, name_length, syntax, definition)
        return self._templates[found.text]

    def _filled(self, template: _Template, found: AbstractOperation) -> str:
        parts = [part if isinstance(part, str) else found.values[part] for part in template.before]
        if found.body is None:
            return "".join(parts)
        parts.append(self._region(found.region(template.arguments)))
        parts += [part if isinstance(part, str) else found.values[part] for part in template.behind]
        return "".join(parts)

    def _region(self, region: RegionText) -> str:
        arguments = self.span(*region.arguments) if region.arguments else ""
        return f"({arguments}) {{{self.span(*region.body)}}}"

    def _generic_operation(self, quoted_name: str, definition: OpDef, op: OperationText) -> str:
        inherent = {argument.name for argument in definition.attributes}
        properties = {name: to_attributes(text) for name, text in op.attributes.items() if name in inherent}
        discardable = {name: to_attributes(text) for name, text in op.attributes.items() if name not in inherent}
        text = f"{quoted_name}({', '.join(op.operands)}){op.successors}"
        if properties:
            text += f" <{dictionary_text(properties)}>"
        if op.regions:
            text += f" ({', '.join(map(self._generic_region, op.regions))})"
        if discardable:
            text += f" {dictionary_text(discardable)}"
        return f"{text} : {function_type_text(op.operand_types, op.result_types)}"

    def _generic_region(self, region: RegionText) -> str:
        if region.arguments is None:
            return f"{{{self.span(*region.body)}}}"
        indentation = self._text.rfind("\n", 0, region.arguments[0])
        label = self._text[indentation : region.arguments[0]].split("^")[0]
        return f"{{{label}^bb0({self.span(*region.arguments)}):{self.span(*region.body)}}}"


@dataclass(frozen=True, slots=True)
class _Template:
    """An operation in custom syntax, with numbers in the place of the names of its values.

    Args:
        before: what comes before the region.
        behind: what comes behind it.
        arguments: the offsets of the arguments of the region in the abstract text; None where there are none.
    """

    before: list[str | int]
    behind: list[str | int]
    arguments: Span | None


# No text that the host prints has it.
_REGION = "\0"


def _made_template(
    found: AbstractOperation, name_length: int, syntax: DialectSyntax, definition: OpDef
) -> _Template | None:
    text = found.text
    cursor = Cursor(text, name_length)
    try:
        op = read_generic(cursor)
    except AsmSyntaxError:
        return None
    # A region on one line is read with the operation.
    if text[cursor.position :].strip() or len(op.regions) != (found.body is not None):
        return None
    for hidden in model.attribute_names(definition):
        op.attributes.pop(hidden, None)
    if not _is_printable(definition, op):
        return None
    printed = OperationPrinter(syntax.definition, definition, op, lambda region: _REGION).print()
    before, _, behind = printed.partition(_REGION)
    arguments = op.regions[0].arguments if op.regions else None
    return _Template(split_at_values(before), split_at_values(behind), arguments)


def _is_printable(definition: OpDef, op: OperationText) -> bool:
    """Whether the operation has what its custom syntax shows; one that does not verify may lack it."""
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
    """The text of an attribute with what is in it of known dialects in their own syntax."""
    return _ATTRIBUTE.sub(
        lambda m: _attribute(m[1], m[2], m[3]) if m[1] in SYNTAXES else m[0],
        text,
    )


def _attribute_of(mnemonic: str, text: str) -> str:
    """Returns the syntax, without its name, of an attribute that the host printed."""
    match = _ATTRIBUTE.fullmatch(text.strip())
    return unescape(match[3]) if match and match[2] == mnemonic else text


class OperationPrinter:
    """Prints one operation of the dialect in its custom syntax."""

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
