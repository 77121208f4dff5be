# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the typed view of an operation as Python, in the style of upstream's bindings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir_shard.ods.accessor_source import (
    attribute_accessor,
    group_type,
    is_segmented,
    region_accessor,
    value_accessor,
)
from mlir_shard.ods.conversion_source import accepted_type, conversion, is_unit
from mlir_shard.ods.model import DialectDef, OpDef, Operand, ResultDef, Variadicity
from mlir_shard.ods.model_source import quote
from mlir_shard.ods.python_text import RESERVED_IN_OPS, docstring, indented, safe
from mlir_shard.ods.type_runs import are_runs

# How upstream's `_ODS_OPERAND_SEGMENTS` says it.
_SEGMENT = {Variadicity.SINGLE: 1, Variadicity.OPTIONAL: 0, Variadicity.VARIADIC: -1}


def op_class(dialect: DialectDef, op: OpDef) -> str:
    """Source of the class of an operation: its builder, and accessors for its parts."""
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
    """The operands, with names for those that have none."""
    return tuple(each if each.name else replace(each, name=f"operand{i}") for i, each in enumerate(operands))


def _named_results(results: tuple[ResultDef, ...]) -> tuple[ResultDef, ...]:
    """The results, with names for those that have none."""
    names = [each.name or ("result" if len(results) == 1 else f"result{i}") for i, each in enumerate(results)]
    return tuple(replace(each, name=name) for name, each in zip(names, results, strict=True))


def _segments(kind: str, parts: Sequence[Operand | ResultDef]) -> list[str]:
    if not is_segmented(parts):
        return []
    return [f"_ODS_{kind}_SEGMENTS = {[_SEGMENT[part.variadicity] for part in parts]}"]


def _inferred(op: OpDef, result: ResultDef) -> str | None:
    """An expression for the type of a result, where ODS tells it."""
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
    """An expression for the operands, or for the types of the results, as the bindings take them."""
    items = []
    for part in parts:
        name = _safe(part.name)
        group = f"values_of({name})" if isinstance(part, Operand) else name
        if part.variadicity is Variadicity.SINGLE or (is_segmented(parts) and part.variadicity is Variadicity.OPTIONAL):
            items.append(name)
        elif is_segmented(parts):
            # The bindings count the groups into an attribute.
            items.append(group)
        elif len(parts) == 1 and part.variadicity is Variadicity.VARIADIC:
            return group if isinstance(part, Operand) else f"list({name})"
        elif part.variadicity is Variadicity.VARIADIC:
            items.append(f"*{group}")
        else:
            items.append(f"*([] if {name} is None else [{name}])")
    return f"[{', '.join(items)}]"
