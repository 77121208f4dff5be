# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the accessors of an op view: properties for operands, results, attributes and regions."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_shard.ods.conversion_source import accepted_type, attribute_type, conversion, enum_table, is_unit
from mlir_shard.ods.model import AttributeArgument, DialectDef, Operand, RegionDef, ResultDef, Variadicity
from mlir_shard.ods.model_source import quote
from mlir_shard.ods.python_text import RESERVED_IN_OPS, indented, property_source, safe

_ATTRIBUTES = "self.operation.attributes"
_CONTEXT = "self.operation.context"


def is_segmented(parts: Sequence[Operand | ResultDef]) -> bool:
    """Whether an attribute has to say which values belong to which group."""
    return sum(part.variadicity is not Variadicity.SINGLE for part in parts) > 1


def group_type(variadicity: Variadicity, one: str) -> str:
    """The type of a group of values, each of type `one`."""
    if variadicity is Variadicity.VARIADIC:
        return f"Sequence[{one}]"
    return f"{one} | None" if variadicity is Variadicity.OPTIONAL else one


def value_accessor(parts: Sequence[Operand | ResultDef], index: int) -> list[str]:
    """The property for part number `index` of an op's operands or results."""
    part = parts[index]
    kind, one = ("operand", "ir.Value") if isinstance(part, Operand) else ("result", "ir.OpResult")
    values = f"self.operation.{kind}s"
    if is_segmented(parts):
        group = f'segment({values}, {_ATTRIBUTES}["{kind}SegmentSizes"], {index})'
        single = f"{group}[0]"
    else:
        # Behind a group of any length, places are counted from the end.
        behind = len(parts) - index - 1
        after_group = any(each.variadicity is not Variadicity.SINGLE for each in parts[:index])
        single = f"{values}[{-behind - 1 if after_group else index}]"
        group = values
        if len(parts) > 1:
            group += f"[{index}:{f'len({values}) - {behind}' if behind else ''}]"
    forms = {Variadicity.SINGLE: single, Variadicity.OPTIONAL: f"only({group})", Variadicity.VARIADIC: group}
    name = safe(part.name, RESERVED_IN_OPS)
    return property_source(name, group_type(part.variadicity, one), part.summary, f"return {forms[part.variadicity]}")


def attribute_accessor(dialect: DialectDef, attribute: AttributeArgument) -> list[str]:
    """The property for an attribute, and its setter."""
    name = safe(attribute.name, RESERVED_IN_OPS)
    type_, value = _attribute_value(dialect, attribute)
    summary = attribute.summary or attribute.name
    if attribute.default_value is not None:
        summary += f"; {attribute.default_value} where it is not given"
    key, constraint = quote(attribute.name), attribute.constraint
    converted = conversion(dialect, constraint, "value", _CONTEXT)
    accepted = accepted_type(dialect, constraint)
    if is_unit(constraint):
        converted += " if value else None"
    elif not attribute.required:
        converted += " if value is not None else None"
        accepted += " | None"
    return [
        *property_source(name, type_, summary, f"return {value}"),
        "",
        f"@{name}.setter",
        f"def {name}(self, value: {accepted}) -> None:",
        *indented([f"set_attribute(self, {key}, {converted})"]),
    ]


def _attribute_value(dialect: DialectDef, attribute: AttributeArgument) -> tuple[str, str]:
    """The type of the property for an attribute, and the expression it gives back."""
    key, constraint, default = quote(attribute.name), attribute.constraint, attribute.default_value
    if is_unit(constraint):
        return "bool", f"{key} in {_ATTRIBUTES}"
    if constraint.enum is not None:
        missing = quote(str(default)) if default is not None else "None"
        member = f"enum_member({_ATTRIBUTES}, {key}, {enum_table(constraint.enum)}, {missing})"
        return (constraint.enum if attribute.required or default is not None else f"{constraint.enum} | None"), member
    type_, value = attribute_type(dialect, constraint), f"{_ATTRIBUTES}[{key}]"
    if attribute.required:
        return type_, value
    if default is None or constraint.attribute is not None:
        return f"{type_} | None", f"{value} if {key} in {_ATTRIBUTES} else None"
    literal = quote(default) if isinstance(default, str) else repr(default)
    return type_, f"{value} if {key} in {_ATTRIBUTES} else {conversion(dialect, constraint, literal, _CONTEXT)}"


def region_accessor(regions: Sequence[RegionDef], index: int) -> list[str]:
    """The property for region number `index`."""
    name = safe(regions[index].name or f"region{index}", RESERVED_IN_OPS)
    return property_source(name, "ir.Region", regions[index].summary, f"return self.operation.regions[{index}]")
