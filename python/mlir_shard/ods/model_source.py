# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a dialect's model as the Python expression that makes it again."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum

WIDTH = 120


def expression(value: object, indent: int = 0) -> str:
    """Python source of `value`: one line if it fits behind `indent` columns, else one line for each part.

    Values are dataclasses, whose fields are left out where they have the default, enums, tuples and literals.
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
    """A string literal, with the quotes that a formatter would choose."""
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
    """The names of the classes that `expression(value)` refers to."""
    if isinstance(value, tuple):
        return set().union(*(class_names(item) for item in value))
    if isinstance(value, Enum):
        return {type(value).__name__}
    if is_dataclass(value):
        return {type(value).__name__}.union(*(class_names(part) for _, part in _parts(value)))
    return set()
