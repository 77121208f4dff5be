# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the Python class of an attribute: a property for each parameter."""

from __future__ import annotations

from mlir_shard.ods.model import AttrDef, DialectDef, ParameterDef
from mlir_shard.ods.python_text import RESERVED_IN_ATTRIBUTES, docstring, indented, property_source, safe

# Python's types for C++ classes, without their namespace.
_PYTHON = {
    "Attribute": "ir.Attribute",
    "FlatSymbolRefAttr": "str",
    "IntegerAttr": "int",
    "StringAttr": "str",
    "StringRef": "str",
    "Type": "ir.Type",
    "bool": "bool",
    "double": "float",
    "float": "float",
    "int": "int",
    "int32_t": "int",
    "int64_t": "int",
    "string": "str",
    "uint32_t": "int",
    "uint64_t": "int",
    "unsigned": "int",
}


def value_class(name: str) -> str:
    """The dataclass for the values of an attribute class: `MeshAttr` is for `Mesh`."""
    return name.removesuffix("Attr")


def value_classes(dialect: DialectDef) -> list[str]:
    """The dataclasses and enums that stand for the dialect's attributes and enums."""
    return sorted([value_class(each.name) for each in dialect.attributes] + [each.name for each in dialect.enums])


def parameter_type(dialect: DialectDef, parameter: ParameterDef) -> str:
    """The Python type of a parameter of an attribute."""
    if parameter.alternatives:
        text = " | ".join(_named_type(dialect, name) for name in parameter.alternatives)
    elif parameter.attribute is not None:
        text = _named_type(dialect, parameter.attribute)
    elif parameter.enum is not None:
        text = parameter.enum
    else:
        text = _PYTHON.get(parameter.cpp_type.rsplit("::", 1)[-1], "Any")
    if parameter.array:
        return f"tuple[{text}, ...]"
    return f"{text} | None" if parameter.optional and text != "Any" else text


def _named_type(dialect: DialectDef, name: str) -> str:
    attribute = dialect.attribute(name)
    return value_class(attribute.name) if attribute is not None else _PYTHON.get(name, "Any")


def attribute_class(dialect: DialectDef, attribute: AttrDef) -> str:
    """Source of the class of an attribute."""
    entries = [(each.name, each.summary) for each in attribute.parameters]
    lines = [
        *docstring(attribute.summary, attribute.description, {"Parameters": entries}),
        "",
        f'mnemonic = "{attribute.mnemonic}"',
        f'attr_name = "{dialect.name}.{attribute.mnemonic}"',
    ]
    for parameter in attribute.parameters:
        name = safe(parameter.name, RESERVED_IN_ATTRIBUTES)
        type_, body = parameter_type(dialect, parameter), f"return self.value.{parameter.name}"
        lines += ["", *property_source(name, type_, parameter.summary, body)]
    return "\n".join([f"class {attribute.name}(SdyAttribute):", *indented(lines)])
