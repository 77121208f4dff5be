# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How generated Python makes the attributes of an op from what it is given, and what it may be given."""

from __future__ import annotations

from mlir_shard.ods.attribute_source import value_class
from mlir_shard.ods.model import AttributeConstraint, DialectDef

# What a builtin attribute can be made from, by its C++ class.
_PYTHON_VALUES = {
    "::mlir::ArrayAttr": "Sequence[Any]",
    "::mlir::BoolAttr": "bool",
    "::mlir::DenseBoolArrayAttr": "Sequence[bool]",
    "::mlir::DenseF32ArrayAttr": "Sequence[float]",
    "::mlir::DenseF64ArrayAttr": "Sequence[float]",
    "::mlir::DenseI16ArrayAttr": "Sequence[int]",
    "::mlir::DenseI32ArrayAttr": "Sequence[int]",
    "::mlir::DenseI64ArrayAttr": "Sequence[int]",
    "::mlir::DenseI8ArrayAttr": "Sequence[int]",
    "::mlir::DictionaryAttr": "Mapping[str, ir.Attribute]",
    "::mlir::FlatSymbolRefAttr": "str",
    "::mlir::FloatAttr": "float",
    "::mlir::IntegerAttr": "int",
    "::mlir::StringAttr": "str",
    "::mlir::TypeAttr": "ir.Type",
}


def is_unit(constraint: AttributeConstraint) -> bool:
    """Whether an attribute says all by being there."""
    return constraint.name == "UnitAttr"


def enum_table(name: str) -> str:
    """The name of the generated table that maps the integers of an enum to its members."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).upper()


def attribute_type(dialect: DialectDef, constraint: AttributeConstraint) -> str:
    """The class of the attribute itself."""
    attribute = dialect.attribute(constraint.attribute) if constraint.attribute is not None else None
    if attribute is not None:
        return attribute.name
    if constraint.storage in _PYTHON_VALUES:
        return f"ir.{constraint.storage.removeprefix('::mlir::')}"
    return "ir.Attribute"


def accepted_type(dialect: DialectDef, constraint: AttributeConstraint) -> str:
    """The type of what the attribute may be given as."""
    own = attribute_type(dialect, constraint)
    if constraint.attribute is not None:
        return f"{own} | {value_class(own)}"
    if constraint.enum is not None:
        return f"{constraint.enum} | str | int | ir.Attribute"
    if is_unit(constraint):
        return "bool"
    python = _PYTHON_VALUES.get(constraint.storage)
    return own if python is None else f"{python} | {own}"


def conversion(dialect: DialectDef, constraint: AttributeConstraint, value: str, context: str) -> str:
    """An expression that makes the attribute of what `value` is, an expression too, in `context`."""
    if constraint.attribute is not None:
        return f"to_attribute({value}, {context})"
    enum = dialect.enum(constraint.enum) if constraint.enum is not None else None
    if enum is not None:
        return f"enum_attribute({value}, {enum_table(enum.name)}, {enum.width}, {context})"
    return f'builtin_attribute("{constraint.name}", {value}, {context})'
