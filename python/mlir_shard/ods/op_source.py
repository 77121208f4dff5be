# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the typed view of an operation as Python, with its accessors, in the style of upstream's bindings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir_shard.ods.model import (
    AttributeArgument,
    DialectDef,
    OpDef,
    Operand,
    RegionDef,
    ResultDef,
    Variadicity,
    are_runs,
)
from mlir_shard.ods.python_source import (
    RESERVED_IN_OPS,
    accepted_type,
    attribute_type,
    conversion,
    docstring,
    enum_table,
    indented,
    is_unit,
    property_source,
    quote,
    safe,
)

_ATTRIBUTES = "self.operation.attributes"
_CONTEXT = "self.operation.context"


def is_segmented(parts: Sequence[Operand | ResultDef]) -> bool:
    """Returns whether an attribute must contain the number of values in each group."""
    return sum(part.variadicity is not Variadicity.SINGLE for part in parts) > 1


def group_type(variadicity: Variadicity, one: str) -> str:
    """Returns the type of a group of values, each of type `one`."""
    if variadicity is Variadicity.VARIADIC:
        return f"Sequence[{one}]"
    return f"{one} | None" if variadicity is Variadicity.OPTIONAL else one


def value_accessor(parts: Sequence[Operand | ResultDef], index: int) -> list[str]:
    """Returns the property for part number `index` of an op's operands or results."""
    part = parts[index]
    kind, one = ("operand", "ir.Value") if isinstance(part, Operand) else ("result", "ir.OpResult")
    values = f"self.operation.{kind}s"
    if is_segmented(parts):
        group = f'segment({values}, {_ATTRIBUTES}["{kind}SegmentSizes"], {index})'
        single = f"{group}[0]"
    else:
        # After a group of variable length, indices are counted from the end.
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
    """Returns the property for an attribute, and its setter."""
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
    """Returns the type of the property for an attribute, and the expression that the property returns."""
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
    """Returns the property for region number `index`."""
    name = safe(regions[index].name or f"region{index}", RESERVED_IN_OPS)
    return property_source(name, "ir.Region", regions[index].summary, f"return self.operation.regions[{index}]")


# The values in upstream's `_ODS_OPERAND_SEGMENTS`.
_SEGMENT = {Variadicity.SINGLE: 1, Variadicity.OPTIONAL: 0, Variadicity.VARIADIC: -1}


def op_class(dialect: DialectDef, op: OpDef) -> str:
    """Returns the source of the class of an operation: its builder, and accessors for its parts."""
    operands, results = _named_operands(op.operands), _named_results(op.results)
    op = replace(op, arguments=(*operands, *op.attributes) if operands != op.operands else op.arguments)
    parts: list[tuple[str, str]] = [(each.name, each.summary) for each in results]
    sections = {
        "Operands": [(_safe(each.name), each.summary) for each in op.operands],
        "Attributes": [(_safe(each.name), each.summary) for each in op.attributes],
        "Results": [(_safe(name), summary) for name, summary in parts],
        "Regions": [(_safe(each.name), each.summary) for each in op.regions],
    }
    lines = [
        *docstring(op.summary, op.description, sections),
        "",
        f'OPERATION_NAME = "{dialect.name}.{op.mnemonic}"',
        f"_ODS_REGIONS = ({len(op.regions)}, True)",
        *_segments("OPERAND", op.operands),
        *_segments("RESULT", results),
        "",
        *_builder(dialect, op, results),
    ]
    accessors = [value_accessor(op.operands, index) for index in range(len(op.operands))]
    accessors += [value_accessor(results, index) for index in range(len(results))]
    accessors += [attribute_accessor(dialect, attribute) for attribute in op.attributes]
    accessors += [region_accessor(op.regions, index) for index in range(len(op.regions))]
    for accessor in accessors:
        lines += ["", *accessor]
    return "\n".join([f"class {op.name}(ir.OpView):", *indented(lines)])


def _safe(name: str) -> str:
    return safe(name, RESERVED_IN_OPS)


def _named_operands(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Returns the operands, with generated names for unnamed ones."""
    return tuple(each if each.name else replace(each, name=f"operand{i}") for i, each in enumerate(operands))


def _named_results(results: tuple[ResultDef, ...]) -> tuple[ResultDef, ...]:
    """Returns the results, with generated names for unnamed ones."""
    names = [each.name or ("result" if len(results) == 1 else f"result{i}") for i, each in enumerate(results)]
    return tuple(replace(each, name=name) for name, each in zip(names, results, strict=True))


def _segments(kind: str, parts: Sequence[Operand | ResultDef]) -> list[str]:
    if not is_segmented(parts):
        return []
    return [f"_ODS_{kind}_SEGMENTS = {[_SEGMENT[part.variadicity] for part in parts]}"]


def _inferred(op: OpDef, result: ResultDef) -> str | None:
    """Returns an expression for the type of a result; None if ODS does not determine the type."""
    if result.variadicity is not Variadicity.SINGLE:
        return None
    if result.constraint.buildable is not None:
        return f"ir.Type.parse({quote(result.constraint.buildable)}, context)"
    operands = [operand.name for operand in op.operands if operand.variadicity is Variadicity.SINGLE]
    if op.has_trait("SameOperandsAndResultType") and operands:
        return f"type_of({_safe(operands[0])})"
    for trait in op.traits:
        if result.name in trait.same_types:
            for name in operands:
                if name in trait.same_types:
                    return f"type_of({_safe(name)})"
            for attribute in op.attributes:
                if attribute.required and attribute.name in trait.same_types:
                    return f'attributes["{attribute.name}"].type'
    return None


def _builder(dialect: DialectDef, op: OpDef, results: tuple[ResultDef, ...]) -> list[str]:
    positional, keywords = [], []
    for result in results:
        if _inferred(op, result) is None:
            positional.append(f"{_safe(result.name)}: {group_type(result.variadicity, 'ir.Type')}")
        else:
            keywords.append(f"{_safe(result.name)}: ir.Type | None = None")
    for argument in op.arguments:
        name = _safe(argument.name)
        if isinstance(argument, Operand):
            type_ = group_type(argument.variadicity, "ir.Value | ir.Operation | ir.OpView")
            required = argument.variadicity is not Variadicity.OPTIONAL
        else:
            type_, required = accepted_type(dialect, argument.constraint), argument.required
        if required:
            positional.append(f"{name}: {type_}")
        elif not isinstance(argument, Operand) and is_unit(argument.constraint):
            keywords.append(f"{name}: bool = False")
        else:
            keywords.append(f"{name}: {type_.removesuffix(' | None')} | None = None")
    keywords += ["loc: ir.Location | None = None", "ip: ir.InsertionPoint | None = None"]
    parameters = [f"{each}," for each in ("self", *positional, "*", *keywords)]
    return ["def __init__(", *indented(parameters), ") -> None:", *indented(_body(dialect, op, results))]


def _body(dialect: DialectDef, op: OpDef, results: tuple[ResultDef, ...]) -> list[str]:
    required = [
        f'"{each.name}": {conversion(dialect, each.constraint, _safe(each.name), "context")},'
        for each in op.attributes
        if each.required
    ]
    lines = ["attributes: dict[str, Any] = {}"]
    if required:
        lines = ["attributes: dict[str, Any] = {", *indented(required), "}"]
    for each in op.attributes:
        if not each.required:
            name = _safe(each.name)
            test = name if is_unit(each.constraint) else f"{name} is not None"
            converted = conversion(dialect, each.constraint, name, "context")
            lines += [f"if {test}:", f'    attributes["{each.name}"] = {converted}']
    for result in results:
        expression = _inferred(op, result)
        if expression is not None:
            lines += [f"if {_safe(result.name)} is None:", f"    {_safe(result.name)} = {expression}"]
    listed = [_listed(op.operands), _listed(results)]
    runs = [are_runs(op.operands), are_runs(results)]
    if any(runs):
        lines += [f"operands: list[Any] = {listed[0]}", f"results: list[Any] = {listed[1]}"]
        listed = ["operands", "results"]
        passed = ", ".join(name if has_runs else "None" for name, has_runs in zip(listed, runs, strict=True))
        lines.append(f"attributes |= type_run_attributes({passed}, context)")
    if any("context" in line for line in lines):
        lines.insert(0, "context = context_of(loc)")
    arguments = [
        "self.OPERATION_NAME",
        "self._ODS_REGIONS",
        "self._ODS_OPERAND_SEGMENTS" if is_segmented(op.operands) else "None",
        "self._ODS_RESULT_SEGMENTS" if is_segmented(results) else "None",
        f"operands={listed[0]}",
        f"results={listed[1]}",
        "attributes=attributes",
        "loc=loc",
        "ip=ip",
    ]
    return [*lines, "super().__init__(", *indented([f"{each}," for each in arguments]), ")"]


def _listed(parts: Sequence[Operand | ResultDef]) -> str:
    """Returns an expression for the operands, or for the types of the results, in the form for the bindings."""
    items = []
    for part in parts:
        name = _safe(part.name)
        group = f"values_of({name})" if isinstance(part, Operand) else name
        if part.variadicity is Variadicity.SINGLE or (is_segmented(parts) and part.variadicity is Variadicity.OPTIONAL):
            items.append(name)
        elif is_segmented(parts):
            # The bindings store the lengths of the groups in an attribute.
            items.append(group)
        elif len(parts) == 1 and part.variadicity is Variadicity.VARIADIC:
            return group if isinstance(part, Operand) else f"list({name})"
        elif part.variadicity is Variadicity.VARIADIC:
            items.append(f"*{group}")
        else:
            items.append(f"*([] if {name} is None else [{name}])")
    return f"[{', '.join(items)}]"
