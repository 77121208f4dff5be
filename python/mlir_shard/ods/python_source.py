# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generated Python: names and layout, the model as an expression, attribute classes, and conversions to attributes."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum

from mlir_shard.ods.model import BUILTIN_ATTRIBUTES, AttrDef, AttributeConstraint, DialectDef, ParameterDef

# Names that `ir.OpView` and `ir.DynamicAttr`, or the classes generated here, already use.
RESERVED_IN_OPS = frozenset(
    ("attached", "attributes", "build_generic", "clone", "context", "detach_from_parent", "erase", "get_asm",
     "has_trait", "ip", "is_before_in_block", "loc", "location", "move_after", "move_before", "name", "op_operands",
     "operands", "operation", "opview", "parent", "parse", "print", "regions", "results", "self", "successors",
     "verify", "walk", "write_bytecode")
)  # fmt: skip
RESERVED_IN_ATTRIBUTES = frozenset(
    ("attr_name", "context", "get", "get_named", "isinstance", "lookup_typeid", "maybe_downcast", "mnemonic", "params",
     "parse", "self", "static_typeid", "text", "type", "type_name", "typeid", "value")
)  # fmt: skip


def safe(name: str, reserved: frozenset[str]) -> str:
    """Returns `name`, followed by an underscore if Python or the base class already uses the name."""
    return f"{name}_" if name in reserved or keyword.iskeyword(name) else name


def sentence(text: str) -> str:
    """Returns `text` with an initial capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def indented(lines: Sequence[str], columns: int = 4) -> list[str]:
    """Returns the lines indented by `columns` spaces; empty lines stay empty."""
    return [" " * columns + line if line else "" for line in lines]


def docstring(
    summary: str, description: str = "", sections: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> list[str]:
    """Returns the lines of a docstring: a summary, a description, and lists of names with descriptions."""
    paragraphs = [sentence(summary) if summary else "", description]
    for title, entries in (sections or {}).items():
        if entries:
            listed = (textwrap.indent(f"{name}: {text}" if text else name, "    ") for name, text in entries)
            paragraphs.append("\n".join([f"{title}:", *listed]))
    text = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if "\n" in quoted:
        return [*f'"""{quoted}'.split("\n"), '"""']
    return [f'"""{quoted} """' if quoted.endswith('"') else f'"""{quoted}"""']


def property_source(name: str, type_: str, summary: str, body: str) -> list[str]:
    """Returns the lines of a read-only property."""
    return [
        "@property",
        f"def {name}(self) -> {type_}:",
        *indented([*docstring(summary or name.replace("_", " ")), body]),
    ]


WIDTH = 120


def expression(value: object, indent: int = 0) -> str:
    """Returns the Python source of `value`: one line if it fits after `indent` columns, else one line for each part.

    Values are dataclasses, whose fields with default values are left out, enums, tuples and literals.
    """
    one_line = _one_line(value)
    if indent + len(one_line) <= WIDTH and "\n" not in one_line and r"\n" not in one_line:
        return one_line
    inner = indent + 4
    pad, end = " " * inner, " " * indent
    if isinstance(value, str) and "\n" in value:
        pieces = value.splitlines(keepends=True)
        return "(\n" + "".join(f"{pad}{quote(piece)}\n" for piece in pieces) + f"{end})"
    if isinstance(value, tuple):
        return "(\n" + "".join(f"{pad}{expression(item, inner)},\n" for item in value) + f"{end})"
    if is_dataclass(value):
        lines = "".join(f"{pad}{name}={expression(part, inner)},\n" for name, part in _parts(value))
        return f"{type(value).__name__}(\n{lines}{end})"
    return one_line


def quote(text: str) -> str:
    """Returns a string literal, with the quotes that a formatter would choose."""
    literal = repr(text)
    if literal.startswith("'") and '"' not in text:
        return '"' + literal[1:-1].replace("\\'", "'") + '"'
    return literal


def _one_line(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_one_line, value)) + ("," if len(value) == 1 else "") + ")"
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(f'{name}={_one_line(part)}' for name, part in _parts(value))})"
    return repr(value)


def _parts(value: object) -> list[tuple[str, object]]:
    assert is_dataclass(value)
    return [
        (each.name, getattr(value, each.name))
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
    ]


def class_names(value: object) -> set[str]:
    """Returns the names of the classes in `expression(value)`."""
    if isinstance(value, tuple):
        return set().union(*(class_names(item) for item in value))
    if isinstance(value, Enum):
        return {type(value).__name__}
    if is_dataclass(value):
        return {type(value).__name__}.union(*(class_names(part) for _, part in _parts(value)))
    return set()


# The Python types for C++ classes, by the names of the classes without their namespaces.
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
    """Returns the name of the dataclass for the values of an attribute class: `Mesh` for `MeshAttr`."""
    return name.removesuffix("Attr")


def value_classes(dialect: DialectDef) -> list[str]:
    """Returns the names of the dataclasses and enums for the dialect's attributes and enums."""
    return sorted([value_class(each.name) for each in dialect.attributes] + [each.name for each in dialect.enums])


def parameter_type(dialect: DialectDef, parameter: ParameterDef) -> str:
    """Returns the Python type of a parameter of an attribute."""
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
    """Returns the source of the class of an attribute."""
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


# The Python types from which builtin attributes can be made, by their C++ classes.
_PYTHON_VALUES = {storage: python for storage, (python, _) in BUILTIN_ATTRIBUTES.items() if python}


def is_unit(constraint: AttributeConstraint) -> bool:
    """Returns whether an attribute is a unit attribute, which has no value besides its presence."""
    return constraint.name == "UnitAttr"


def enum_table(name: str) -> str:
    """Returns the name of the generated table that maps the integers of an enum to its members."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name).upper()


def attribute_type(dialect: DialectDef, constraint: AttributeConstraint) -> str:
    """Returns the class of an attribute."""
    attribute = dialect.attribute(constraint.attribute) if constraint.attribute is not None else None
    if attribute is not None:
        return attribute.name
    if constraint.storage in _PYTHON_VALUES:
        return f"ir.{constraint.storage.removeprefix('::mlir::')}"
    return "ir.Attribute"


def accepted_type(dialect: DialectDef, constraint: AttributeConstraint) -> str:
    """Returns the type of the values that are accepted for an attribute."""
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
    """Returns an expression that makes an attribute in `context` of `value`, which are expressions too."""
    if constraint.attribute is not None:
        return f"to_attribute({value}, {context})"
    enum = dialect.enum(constraint.enum) if constraint.enum is not None else None
    if enum is not None:
        return f"enum_attribute({value}, {enum_table(enum.name)}, {enum.width}, {context})"
    return f'builtin_attribute("{constraint.name}", {value}, {context})'
