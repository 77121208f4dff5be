# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names, docstrings and layout of generated Python."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Mapping, Sequence

# What `ir.OpView` and `ir.DynamicAttr`, or the classes made here, already call something.
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
    """`name`, with an underscore behind it where Python or the base class has another use for it."""
    return f"{name}_" if name in reserved or keyword.iskeyword(name) else name


def sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def indented(lines: Sequence[str], columns: int = 4) -> list[str]:
    """The lines behind that many columns; empty lines stay empty."""
    return [" " * columns + line if line else "" for line in lines]


def docstring(
    summary: str, description: str = "", sections: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> list[str]:
    """The lines of a docstring: a summary, a description, and lists of named things."""
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
    """The lines of a read-only property."""
    return [
        "@property",
        f"def {name}(self) -> {type_}:",
        *indented([*docstring(summary or name.replace("_", " ")), body]),
    ]
