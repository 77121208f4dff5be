# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The intermediate form of operations between custom and generic syntax: their parts as text, by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir_shard.asm.cursor import Cursor

Span = tuple[int, int]
"""A part of the text being translated, from one offset up to another."""


@dataclass(slots=True)
class RegionText:
    """A region: its block arguments and its body, in the text being translated.

    `arguments` is the text in the parentheses of the entry block, None if the block has no label; `body` is the text
    from there up to the closing brace.
    """

    arguments: Span | None
    body: Span


@dataclass(slots=True)
class OperationText:
    """The parts of an operation.

    `operands` are SSA names, types are texts, both in order; `attributes` are texts by name; `successors` is the
    bracketed list, or empty.
    """

    operands: list[str] = field(default_factory=list)
    successors: str = ""
    regions: list[RegionText] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    operand_types: list[str] = field(default_factory=list)
    result_types: list[str] = field(default_factory=list)


def read_generic(cursor: Cursor) -> OperationText:
    """Reads an operation in MLIR's generic form from the end of its quoted name on.

    generic-operation ::= string-literal `(` value-use-list? `)` successor-list? dictionary-properties?
    region-list? dictionary-attribute? `:` function-type
    """
    op = OperationText()
    cursor.expect("(")
    op.operands = value_list(cursor)
    cursor.expect(")")
    if cursor.at("["):
        op.successors = cursor.skip_bracketed()
    if cursor.accept("<"):
        read_dictionary(cursor, op.attributes)
        cursor.expect(">")
    if cursor.accept("("):
        op.regions = cursor.separated(lambda: _read_region(cursor))
        cursor.expect(")")
    if cursor.at("{"):
        read_dictionary(cursor, op.attributes)
    cursor.expect(":")
    read_function_type(cursor, op)
    return op


def value_list(cursor: Cursor) -> list[str]:
    """Reads SSA values separated by commas; there may be none."""
    if not cursor.at("%"):
        return []
    return cursor.separated(lambda: cursor.required(cursor.value_name(), "a value"))


def read_function_type(cursor: Cursor, op: OperationText) -> None:
    """Reads `(operand types) -> result types`."""
    op.operand_types = _types_in_parentheses(cursor)
    cursor.expect("->")
    op.result_types = _types_in_parentheses(cursor) if cursor.at("(") else [cursor.skip_type()]


def _types_in_parentheses(cursor: Cursor) -> list[str]:
    cursor.expect("(")
    types = [] if cursor.at(")") else cursor.type_list()
    cursor.expect(")")
    return types


def read_dictionary(cursor: Cursor, attributes: dict[str, str]) -> None:
    """Reads `{name = attribute, ...}` into `attributes`; an attribute without value becomes `unit`."""
    cursor.expect("{")
    while not cursor.accept("}"):
        name = cursor.dotted_identifier() or cursor.required(cursor.string(), "the name of an attribute")
        if name in attributes:
            raise cursor.error(f"attribute '{name}' occurs more than once")
        attributes[name] = cursor.skip_attribute() if cursor.accept("=") else "unit"
        if not cursor.accept(","):
            cursor.expect("}")
            break


def _read_region(cursor: Cursor) -> RegionText:
    if not cursor.at("{"):
        raise cursor.error(f"expected '{{', found {cursor.found()}")
    close = cursor.closing()
    cursor.expect("{")
    arguments: Span | None = None
    body_start = cursor.position
    if cursor.accept("^"):
        cursor.dotted_identifier()
        label_end = cursor.position
        arguments = cursor.inside_brackets() if cursor.at("(") else (label_end, label_end)
        cursor.expect(":")
        body_start = cursor.position
    cursor.position = close + 1
    return RegionText(arguments, (body_start, close))


def dictionary_text(attributes: dict[str, str]) -> str:
    """Returns `{name = attribute, ...}` as MLIR prints it, sorted by name; empty without attributes."""
    if not attributes:
        return ""
    parts = []
    for name in sorted(attributes):
        key = name if all(c.isalnum() or c in "_$." for c in name) and not name[0].isdigit() else f'"{name}"'
        parts.append(key if attributes[name] == "unit" else f"{key} = {attributes[name]}")
    return "{" + ", ".join(parts) + "}"


def function_type_text(operand_types: list[str], result_types: list[str]) -> str:
    """Returns `(operand types) -> result types` as MLIR prints it."""
    single = len(result_types) == 1 and not result_types[0].startswith("(")
    results = result_types[0] if single else f"({', '.join(result_types)})"
    return f"({', '.join(operand_types)}) -> {results}"
