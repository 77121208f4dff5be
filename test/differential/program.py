# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A StableHLO module as a tree of statements, which can be written as text and minimised step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """The name, shape and element type of a tensor."""

    name: str
    shape: Shape
    element: str = "f32"

    @property
    def type(self) -> str:
        return tensor(self.shape, self.element)

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)


def tensor(shape: Shape, element: str = "f32") -> str:
    """Returns a tensor type as text."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation, without which a program is also valid."""

    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """The statements of a block, the last one its terminator; `header` is the line that names its arguments."""

    statements: tuple[Statement, ...]
    header: str = ""


Part = str | Mark | Body


@dataclass(frozen=True, slots=True)
class Statement:
    """An operation: the values that it defines, and its text in parts. One without results may be omitted."""

    results: tuple[Value, ...]
    parts: tuple[Part, ...]
    is_terminator: bool = False

    def write(self, indent: str) -> str:
        """Returns the text of the operation, one line or, with regions, several."""
        defined = ", ".join(value.name for value in self.results)
        text = "".join(_write_part(part, indent) for part in self.parts)
        return f"{indent}{defined} = {text}" if defined else indent + text


def _write_part(part: Part, indent: str) -> str:
    if isinstance(part, Body):
        lines = [f"{indent}{part.header}"] if part.header else []
        lines += [statement.write(indent + "  ") for statement in part.statements]
        return "\n" + "\n".join(lines) + "\n" + indent
    return part.text if isinstance(part, Mark) else part


@dataclass(frozen=True, slots=True)
class Tied:
    """An argument or a result of a function, and its annotation."""

    value: Value
    mark: Mark

    def result(self) -> str:
        return f"{self.value.type}{self.mark.text}"

    def argument(self) -> str:
        return f"{self.value.name}: {self.result()}"


@dataclass(frozen=True, slots=True)
class Function:
    """A function; all except the main one are private."""

    name: str
    arguments: tuple[Tied, ...]
    statements: tuple[Statement, ...]
    returned: tuple[Tied, ...]

    def write(self) -> str:
        private = "" if self.name == "main" else "private "
        arguments = ", ".join(one.argument() for one in self.arguments)
        results = ", ".join(one.result() for one in self.returned)
        names = ", ".join(one.value.name for one in self.returned)
        types = ", ".join(one.value.type for one in self.returned)
        back = f"  return {names} : {types}" if names else "  return"
        lines = [f"func.func {private}@{self.name}({arguments}) -> ({results}) {{"]
        lines += [statement.write("  ") for statement in self.statements]
        return "\n".join([*lines, back, "}"])


@dataclass(frozen=True, slots=True)
class Program:
    """A module: meshes, one per line, and functions, the main one first."""

    meshes: tuple[str, ...]
    functions: tuple[Function, ...]

    def write(self) -> str:
        return "\n".join([*self.meshes, *(function.write() for function in self.functions)]) + "\n"

    def op_names(self) -> set[str]:
        """Returns the names of the operations that are written generically, or in sdy's own syntax."""
        words = (part.split("(")[0].split("<")[0].split(" ")[0] for part in self._texts())
        return {word.strip('"') for word in words if "." in word}

    def _texts(self) -> Iterator[str]:
        for function in self.functions:
            yield from _texts(function.statements)


def _texts(statements: tuple[Statement, ...]) -> Iterator[str]:
    for statement in statements:
        for part in statement.parts:
            if isinstance(part, Body):
                yield from _texts(part.statements)
            elif isinstance(part, str):
                yield part
