# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The elements of a declarative assembly format, the custom syntax of an operation, an attribute or a type.

The language is that of MLIR's `assemblyFormat` (mlir.llvm.org/docs/DefiningDialects/Operations and
.../AttributesAndTypes). A parsed format is a tuple of the elements below, in the order of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Literal:
    """A keyword or punctuation that is printed unchanged: `` `foo` ``."""

    text: str


@dataclass(frozen=True, slots=True)
class Whitespace:
    """Whitespace, which is only printed: a space, a newline, or, if the text is empty, no space in place of one."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: an operand, result, region or attribute of an op, or a parameter of an attribute or type."""

    name: str


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`type($x)` or `type(operands)`: the types of the named values."""

    argument: Variable | Directive


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive other than `type` and `custom`, such as `attr-dict` or `functional-type(operands, results)`."""

    name: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Custom:
    """`custom<Name>(...)`: syntax that is parsed and printed by code under this name.

    A string argument that is a C++ string literal is represented by its contents, other C++ is unchanged.
    """

    name: str
    arguments: tuple[Argument | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """`(then)? ` or `(then) : (otherwise)?`: one of two branches, chosen by whether the anchor is present.

    The anchor is the element number `anchor` of the branch `anchor_branch`.
    """

    then: tuple[Element, ...]
    otherwise: tuple[Element, ...]
    anchor: int
    anchor_branch: OneOf["then", "otherwise"] = "then"

    @property
    def anchor_element(self) -> Element:
        """The element whose presence decides which branch is printed."""
        return (self.then if self.anchor_branch == "then" else self.otherwise)[self.anchor]

    @property
    def first(self) -> Element:
        """The first element that is parsed, by which a parser chooses the branch."""
        return next(element for element in self.then if not isinstance(element, Whitespace))

    def branch(self, is_present: bool) -> tuple[Element, ...]:
        """Returns the branch to print if the anchor is present, or absent."""
        return self.then if is_present == (self.anchor_branch == "then") else self.otherwise


Argument = Variable | TypeOf | Directive
Element = Literal | Whitespace | Variable | TypeOf | Directive | Custom | Group
AssemblyFormat = tuple[Element, ...]
