# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parses assembly formats."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal as OneOf
from typing import cast

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError

from mlir_shard.ods.assembly_format import (
    Argument,
    AssemblyFormat,
    Custom,
    Directive,
    Element,
    Group,
    Literal,
    TypeOf,
    Variable,
    Whitespace,
)
from mlir_shard.ods.source import LocatedText, Location, OdsError, Source, did_you_mean

DIRECTIVES = (
    "attr-dict", "attr-dict-with-keyword", "custom", "functional-type", "operands", "params", "prop-dict", "qualified",
    "ref", "regions", "results", "struct", "successors", "type",
)  # fmt: skip
PUNCTUATION = frozenset(
    ("->", "...", "_", ":", ",", "=", "<", ">", "(", ")", "{", "}", "[", "]", "?", "+", "*", "|", "/", "-")
)
_KEYWORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_SPACES = {"": "", " ": " ", "\\n": "\n", "\n": "\n"}


class _FormatError(Exception):
    """A mistake at a position of the format, counted in characters."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class _Anchor:
    """An element followed by `^`."""

    def __init__(self, element: Element) -> None:
        self.element = element


@cache
def _parser() -> Lark:
    grammar = (Path(__file__).parent / "assembly_format.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def parse(text: str) -> AssemblyFormat:
    """The elements of the format `text`; OdsError, in the `.td` file if the text came from there, if it is none."""
    try:
        return _Elements().transform(_parser().parse(text))
    except VisitError as error:
        if not isinstance(error.orig_exc, _FormatError):
            raise
        raise OdsError(error.orig_exc.message, locate(text, error.orig_exc.position)) from error
    except UnexpectedInput as error:
        raise OdsError(_explain(text, error), locate(text, _position(text, error))) from error


def locate(text: str, position: int) -> Location | None:
    """Where character number `position` of a format stands: in its `.td` file, or in the text alone."""
    if isinstance(text, LocatedText):
        return text.location.advanced(text, position) if text.location is not None else None
    return Location(Source("assembly format", text), 1, 1).advanced(text, position)


def _position(text: str, error: UnexpectedInput) -> int:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return len(text.rstrip())
    position = error.pos_in_stream
    return position if position is not None and position >= 0 else len(text)


def _explain(text: str, error: UnexpectedInput) -> str:
    rest = text[_position(text, error) :]
    if isinstance(error, UnexpectedCharacters):
        if rest.startswith("`"):
            return "this literal has no closing '`'"
        if rest.startswith("$"):
            return "'$' must be followed by a name"
        if rest.startswith('"'):
            return "this string has no end"
    assert isinstance(error, UnexpectedInput)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "the assembly format ends too early"
    name = _KEYWORD.match(rest.replace("-", "_"))
    if name is not None:
        word = rest[: name.end()]
        if word == "oilist":
            return "'oilist' is not supported; write an optional group for each clause"
        if word not in DIRECTIVES:
            return f"there is no directive '{word}'{did_you_mean(word, DIRECTIVES)}"
        return f"'{word}' cannot stand here, or not without arguments"
    return f"'{rest[:1]}' cannot stand here"


@v_args(inline=True)
class _Elements(Transformer[Token, AssemblyFormat]):
    """Turns the tree of a format into elements."""

    def start(self, *elements: Element) -> AssemblyFormat:
        return elements

    def literal(self, token: Token) -> Element:
        text = token[1:-1]
        if text in _SPACES:
            return Whitespace(_SPACES[text])
        if text not in PUNCTUATION and not _KEYWORD.fullmatch(text):
            raise _FormatError(f"'{text}' is neither a keyword nor punctuation", token.start_pos or 0)
        return Literal(text)

    def variable(self, token: Token) -> Variable:
        return Variable(str(token[1:]))

    def plain(self, token: Token) -> Directive:
        return Directive(str(token))

    def type(self, argument: Argument) -> TypeOf:
        return TypeOf(cast("Variable | Directive", argument))

    def call(self, token: Token, *arguments: Argument) -> Directive:
        counts = {"functional-type": 2, "ref": 1, "qualified": 1}
        expected = counts.get(str(token), len(arguments))
        if len(arguments) != expected:
            raise _FormatError(f"'{token}' takes {expected} arguments, not {len(arguments)}", token.start_pos or 0)
        return Directive(str(token), arguments)

    def code(self, token: Token) -> str:
        text = re.sub(r"\\(.)", r"\1", token[1:-1])
        # A C++ string literal stands for what it spells.
        return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text

    def custom(self, name: Token, *arguments: Argument | str | None) -> Custom:
        return Custom(str(name), tuple(argument for argument in arguments if argument is not None))

    def anchor(self, element: Element) -> _Anchor:
        return _Anchor(element)

    @v_args(inline=False, meta=True)
    def branch(self, meta: object, children: list[Element | _Anchor]) -> tuple[int, tuple[Element | _Anchor, ...]]:
        return cast(int, getattr(meta, "start_pos", 0)), tuple(children)

    def group(
        self,
        then: tuple[int, tuple[Element | _Anchor, ...]],
        otherwise: tuple[int, tuple[Element | _Anchor, ...]] | None,
    ) -> Group:
        position = then[0]
        anchors: list[tuple[int, OneOf["then", "otherwise"]]] = []
        branches = []
        for name, branch in (("then", then), ("otherwise", otherwise or (position, ()))):
            for index, child in enumerate(branch[1]):
                if isinstance(child, _Anchor):
                    anchors.append((index, cast('OneOf["then", "otherwise"]', name)))
            branches.append(tuple(child.element if isinstance(child, _Anchor) else child for child in branch[1]))
        if not branches[0]:
            raise _FormatError("an optional group must hold something", position)
        if len(anchors) != 1:
            found = "none" if not anchors else f"{len(anchors)}"
            raise _FormatError(f"an optional group needs one element marked '^', and this has {found}", position)
        return Group(branches[0], branches[1], *anchors[0])
