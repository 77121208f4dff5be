# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads constraints, on types and on attributes, and the parameters of attributes and types."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlir_shard.ods.model import (
    AttributeArgument,
    AttributeConstraint,
    DefaultValue,
    Operand,
    ParameterDef,
    RegionDef,
    ResultDef,
    TypeConstraint,
    Variadicity,
)
from mlir_shard.ods.records import Record, Value, describe
from mlir_shard.ods.source import Location, OdsError

_DECORATIONS = ("OptionalAttr", "DefaultValuedAttr", "DefaultValuedOptionalAttr", "ConfinedAttr")
_ARRAY = re.compile(r"(?:::)?(?:llvm::)?ArrayRef<\s*(.*)\s*>")
_OPTIONAL = re.compile(r"(?:::)?std::optional<\s*(.*)\s*>")
_BUILDABLE = (
    (re.compile(r"\$_builder\.getIntegerType\((\d+)\)"), "i{}"),
    (re.compile(r"\$_builder\.getIntegerType\((\d+), /\*isSigned=\*/true\)"), "si{}"),
    (re.compile(r"\$_builder\.getIntegerType\((\d+), /\*isSigned=\*/false\)"), "ui{}"),
    (re.compile(r"\$_builder\.getF(\d+)Type\(\)"), "f{}"),
    (re.compile(r"\$_builder\.getIndexType\(\)()"), "index"),
    (re.compile(r"\$_builder\.getType<::mlir::NoneType>\(\)()"), "none"),
    (re.compile(r"\$_builder\.getType<BFloat16Type>\(\)()"), "bf16"),
    (re.compile(r"\$_builder\.getType<FloatTF32Type>\(\)()"), "tf32"),
    (re.compile(r"\$_builder\.getType<Float(\w+)Type>\(\)"), "f{}"),
)


def line(text: str | None) -> str:
    """Returns a summary as one line; empty if it is None."""
    return " ".join((text or "").split())


@dataclass(frozen=True, slots=True)
class Variable:
    """An entry of `arguments`, `results`, `regions` or `parameters`."""

    name: str
    value: Value
    location: Location


class ConstraintReader:
    """A reader of the constraints in a dialect's definitions."""

    def __init__(self, dialect: Record, attributes: list[Record], enums: list[Record]) -> None:
        self._dialect = dialect
        self._attributes = {str(record["cppClassName"]): record for record in attributes}
        self._enums = {str(record["className"]): record for record in enums}

    def argument(self, variable: Variable) -> Operand | AttributeArgument:
        """Reads an entry of an op's `arguments`."""
        record, summary = _constraint_of(variable)
        if record.is_a("TypeConstraint"):
            constraint, variadicity = self._values(record)
            return Operand(variable.name, constraint, summary, variadicity)
        if record.is_a("Attr"):
            return self._attribute_argument(variable.name, record, summary)
        kind = (
            "a property; use an attribute" if record.is_a("Property") else "neither a type nor an attribute constraint"
        )
        raise OdsError(f"argument '{variable.name}': '{record!r}' is {kind}", variable.location)

    def result(self, variable: Variable) -> ResultDef:
        """Reads an entry of an op's `results`."""
        record, summary = _constraint_of(variable)
        if not record.is_a("TypeConstraint"):
            raise OdsError(f"result '{variable.name}': '{record!r}' is not a type constraint", variable.location)
        constraint, variadicity = self._values(record)
        return ResultDef(variable.name, constraint, summary, variadicity)

    def region(self, variable: Variable) -> RegionDef:
        """Reads an entry of an op's `regions`."""
        record = variable.value
        if not isinstance(record, Record) or not record.is_a("Region"):
            message = f"region '{variable.name}': {describe(record)} is not a region constraint"
            raise OdsError(message, variable.location)
        blocks = record.number("blocks")
        variadicity = Variadicity.VARIADIC if record.is_a("VariadicRegion") else Variadicity.SINGLE
        return RegionDef(variable.name, line(record.text("summary")), blocks, variadicity)

    def parameter(self, variable: Variable) -> ParameterDef:
        """Reads an entry of the `parameters` of an attribute or type."""
        record = variable.value
        if isinstance(record, str):
            return self._parameter(variable.name, record, "", None, optional=False)
        if not isinstance(record, Record) or "cppType" not in record:
            raise OdsError(f"parameter '{variable.name}': {describe(record)} is not a C++ type", variable.location)
        cpp_type = record.text("cppType") or ""
        default = record.text("defaultValue") or None
        if record.is_a("Attr"):
            parameter = self._parameter(variable.name, cpp_type, line(record.text("summary")), None, optional=False)
            if record.is_a("AnyAttrOf"):
                return _with_alternatives(parameter, record)
            return parameter
        optional = record.is_a("OptionalParameter")
        summary = line(record.text("summary"))
        parameter = self._parameter(variable.name, cpp_type, summary, None if optional else default, optional=optional)
        return replace(parameter, self_type=record.is_a("AttributeSelfTypeParameter"))

    def _parameter(
        self, name: str, cpp_type: str, summary: str, default: str | None, *, optional: bool
    ) -> ParameterDef:
        array = _ARRAY.fullmatch(cpp_type.strip())
        element = array[1] if array is not None else cpp_type.strip()
        wrapped = _OPTIONAL.fullmatch(element)
        element = wrapped[1] if wrapped is not None else element
        class_name = element.rsplit("::", 1)[-1]
        attribute = self._attributes.get(class_name)
        enum = self._enums.get(class_name)
        return ParameterDef(
            name,
            element,
            summary,
            array=array is not None,
            optional=optional,
            default=default,
            attribute=str(attribute["mnemonic"]) if attribute is not None else None,
            enum=class_name if enum is not None else None,
        )

    def _values(self, record: Record) -> tuple[TypeConstraint, Variadicity]:
        variadicity = Variadicity.SINGLE
        if record.is_a("Variadic"):
            variadicity = Variadicity.VARIADIC
        elif record.is_a("Optional"):
            variadicity = Variadicity.OPTIONAL
        if variadicity is not Variadicity.SINGLE:
            base = record.record("baseType")
            assert base is not None
            record = base
        return TypeConstraint(repr(record), line(record.text("summary")), buildable(record)), variadicity

    def _attribute_argument(self, name: str, record: Record, summary: str) -> AttributeArgument:
        optional, default = record.flag("isOptional"), record.text("defaultValue")
        text = line(record.text("summary"))
        base = record
        while any(base.is_a(decoration) for decoration in _DECORATIONS):
            inner = base.record("baseAttr")
            assert inner is not None
            base = inner
        if repr(base) == "UnitAttr":
            default = None
        constraint = self._attribute_constraint(base, text)
        return AttributeArgument(name, constraint, summary, optional, default, self._default_value(default, constraint))

    def _attribute_constraint(self, record: Record, summary: str) -> AttributeConstraint:
        own = record.is_a("AttrDef") and record.record("dialect") is self._dialect
        type_ = record.record("valueType")
        return AttributeConstraint(
            repr(record),
            summary,
            (record.text("storageType") or "").strip(),
            buildable(type_) if type_ is not None else None,
            attribute=str(record["mnemonic"]) if own else None,
            enum=str(record["className"]) if record.is_a("EnumInfo") else None,
        )

    def _default_value(self, default: str | None, constraint: AttributeConstraint) -> DefaultValue:
        text = (default or "").strip()
        if constraint.enum is not None:
            return text.rsplit("::", 1)[-1] or None
        if text in ("true", "false"):
            return text == "true"
        if re.fullmatch(r'"(\\.|[^"\\])*"', text):
            return re.sub(r"\\(.)", r"\1", text[1:-1])
        if re.fullmatch(r"[+-]?\d+", text):
            return int(text)
        if re.fullmatch(r"[+-]?\d*\.\d*(e[+-]?\d+)?f?", text) and text.strip("+-.ef"):
            return float(text.rstrip("f"))
        return None


def buildable(record: Record) -> str | None:
    """Returns the MLIR text of the only type that satisfies a constraint; None if there may be several."""
    if record.is_a("TypeDef"):
        dialect = record.record("dialect")
        parameters = record["parameters"]
        if dialect is not None and not getattr(parameters, "arguments", ()):
            return f"!{dialect['name']}.{record['mnemonic']}"
        return None
    builder = (record.text("builderCall") or "").strip()
    for pattern, form in _BUILDABLE:
        match = pattern.fullmatch(builder)
        if match is not None:
            return form.format(match[1])
    return None


def _with_alternatives(parameter: ParameterDef, record: Record) -> ParameterDef:
    alternatives = tuple(
        str(each["mnemonic"]) if each.is_a("AttrDef") else repr(each)
        for each in record.items("allowedAttributes")
        if isinstance(each, Record)
    )
    return ParameterDef(parameter.name, parameter.cpp_type, parameter.summary, alternatives=alternatives)


def _constraint_of(variable: Variable) -> tuple[Record, str]:
    record = variable.value
    if isinstance(record, Record) and record.is_a("OpVariable"):
        inner = record.record("constraint")
        assert inner is not None
        return inner, line(record.text("summary"))
    if not isinstance(record, Record):
        raise OdsError(f"'{variable.name}': {describe(record)} is not a constraint", variable.location)
    return record, ""
