# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parses assembly formats, and checks that a format prints all parts of an op, an attribute or a type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
from mlir_shard.ods.model import AttributeArgument, OpDef, Operand, ParametricDef, RegionDef, ResultDef, Variadicity
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
    """An error at a position of the format, counted in characters."""

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
    """Returns the elements of the format `text`; raises OdsError, located in the `.td` file of the text, if invalid."""
    try:
        return _Elements().transform(_parser().parse(text))
    except VisitError as error:
        if not isinstance(error.orig_exc, _FormatError):
            raise
        raise OdsError(error.orig_exc.message, locate(text, error.orig_exc.position)) from error
    except UnexpectedInput as error:
        raise OdsError(_explain(text, error), locate(text, _position(text, error))) from error


def locate(text: str, position: int) -> Location | None:
    """Returns the location of character number `position` of a format, in its `.td` file or else in the text."""
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
            return "unterminated literal; expected '`'"
        if rest.startswith("$"):
            return "'$' must be followed by a name"
        if rest.startswith('"'):
            return "unterminated string"
    assert isinstance(error, UnexpectedInput)
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return "unexpected end of the assembly format"
    name = _KEYWORD.match(rest.replace("-", "_"))
    if name is not None:
        word = rest[: name.end()]
        if word == "oilist":
            return "'oilist' is not supported; write an optional group for each clause"
        if word not in DIRECTIVES:
            return f"unknown directive '{word}'{did_you_mean(word, DIRECTIVES)}"
        return f"unexpected '{word}', or its arguments are missing"
    return f"unexpected '{rest[:1]}'"


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
            raise _FormatError(f"'{token}' expects {expected} arguments, not {len(arguments)}", token.start_pos or 0)
        return Directive(str(token), arguments)

    def code(self, token: Token) -> str:
        text = re.sub(r"\\(.)", r"\1", token[1:-1])
        # A C++ string literal is represented by its contents.
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
            raise _FormatError("an optional group must not be empty", position)
        if len(anchors) != 1:
            found = "none" if not anchors else f"{len(anchors)}"
            raise _FormatError(f"an optional group needs one element marked '^', but this has {found}", position)
        return Group(branches[0], branches[1], *anchors[0])


# Traits for which C++ infers the types of the results.
_INFERRING = ("InferTypeOpInterface", "InferTypeOpAdaptor", "FirstAttrDerivedResultType")


def check_op(op: OpDef, text: str, derived_types: Iterable[tuple[str, str]] = ()) -> None:
    """Raises OdsError, at its location in the format `text`, for the first error in the format of `op`.

    `derived_types` are pairs of names: the type of the second can be derived from the type of the first.
    """
    if op.assembly_format is None:
        return
    elements = op.assembly_format
    mentioned = list(_mentions(elements))
    known = [each.name for each in (*op.arguments, *op.results, *op.regions) if each.name]
    _check_names(mentioned, known, f"'{op.name}'", text)
    directives = [element.name for element in mentioned if isinstance(element, Directive)]
    if not {"attr-dict", "attr-dict-with-keyword"} & set(directives):
        raise OdsError(f"the format of '{op.name}' has no 'attr-dict'", locate(text, 0))
    printed = {element.name for element in _flatten(elements) if isinstance(element, Variable)}
    whole = {element.name for element in _flatten(elements) if isinstance(element, Directive)}
    parts: tuple[Operand | RegionDef, ...] = (*op.operands, *op.regions)
    for part in parts:
        kind = "operand" if isinstance(part, Operand) else "region"
        if part.name not in printed and f"{kind}s" not in whole:
            message = f"the format of '{op.name}' lacks the {kind} '{part.name}'"
            raise OdsError(message, locate(text, 0))
    anchors: tuple[Operand | AttributeArgument | RegionDef, ...] = (*op.arguments, *op.regions)
    _check_anchors(elements, {each.name for each in anchors if _may_be_absent(each)}, op.name, text)
    _check_types(op, text, list(derived_types))


def check_parameters(definition: ParametricDef, text: str) -> None:
    """Raises OdsError, at its location in the format `text`, for the first error in the format of an attribute."""
    if definition.assembly_format is None:
        return
    mentioned = list(_mentions(definition.assembly_format))
    known = [parameter.name for parameter in definition.parameters]
    _check_names(mentioned, known, f"'{definition.name}'", text)
    names = {element.name for element in mentioned if isinstance(element, Variable)}
    if "params" not in {element.name for element in mentioned if isinstance(element, Directive)}:
        for parameter in definition.parameters:
            if parameter.name not in names and not parameter.self_type:
                message = f"the format of '{definition.name}' lacks the parameter '{parameter.name}'"
                raise OdsError(message, locate(text, 0))
    absent = {each.name for each in definition.parameters if each.optional or each.default is not None}
    _check_anchors(definition.assembly_format, absent, definition.name, text)


def _may_be_absent(part: Operand | AttributeArgument | RegionDef) -> bool:
    if isinstance(part, AttributeArgument):
        return not part.required
    # An empty region counts as absent.
    return isinstance(part, RegionDef) or part.variadicity is not Variadicity.SINGLE


def _check_names(mentioned: Iterable[Element], known: list[str], owner: str, text: str) -> None:
    for element in mentioned:
        if isinstance(element, Variable) and element.name not in known:
            message = f"{owner} has no variable '{element.name}'{did_you_mean(element.name, known)}"
            raise OdsError(message, _place(text, element.name))


def _check_anchors(elements: Iterable[Element], absent: set[str], owner: str, text: str) -> None:
    for element in elements:
        if isinstance(element, Group):
            anchor = element.anchor_element
            named = [anchor] if not isinstance(anchor, Custom) else list(anchor.arguments)
            variables = [each for each in named if isinstance(each, Variable)]
            if variables and not any(each.name in absent for each in variables):
                name = variables[0].name
                message = f"'{name}' of '{owner}' is always present, so it cannot anchor an optional group"
                raise OdsError(message, _place(text, name))
            _check_anchors(element.then + element.otherwise, absent, owner, text)


def _check_types(op: OpDef, text: str, derived_types: list[tuple[str, str]]) -> None:
    known = set(_typed(op))
    parts: tuple[Operand | ResultDef, ...] = (*op.operands, *op.results)
    known |= {part.name for part in parts if part.constraint.buildable is not None}
    values = {part.name for part in parts}
    together = [values] if op.has_trait("SameOperandsAndResultType") else []
    if op.has_trait("SameTypeOperands"):
        together.append({operand.name for operand in op.operands})
    known |= {attribute.name for attribute in op.attributes}
    together += [set(trait.same_types) for trait in op.traits if trait.same_types]
    # Each iteration may derive types from those that the previous one has derived.
    for _ in values:
        for group in together:
            if group & known:
                known |= group
        known |= {second for first, second in derived_types if first in known}
    if any(op.has_trait(name) for name in _INFERRING):
        known |= {result.name for result in op.results}
    for part in parts:
        if part.name not in known:
            kind = "operand" if isinstance(part, Operand) else "result"
            message = f"the format of '{op.name}' does not specify the type of the {kind} '{part.name}'"
            raise OdsError(message, locate(text, 0))


def _typed(op: OpDef) -> Iterator[str]:
    """Yields the names of the operands and results whose types the format prints."""
    names = {
        "operands": [operand.name for operand in op.operands],
        "results": [result.name for result in op.results],
    }
    for element in _flatten(op.assembly_format or ()):
        arguments: tuple[object, ...] = ()
        if isinstance(element, TypeOf):
            arguments = (element.argument,)
        elif isinstance(element, Directive) and element.name == "functional-type":
            arguments = element.arguments
        for argument in arguments:
            if isinstance(argument, Variable):
                yield argument.name
            elif isinstance(argument, Directive):
                yield from names.get(argument.name, ())


def _flatten(elements: Iterable[Element]) -> Iterator[Element | Argument]:
    """Yields the elements, including those in groups, `custom`, `qualified` and `struct`, not in other directives."""
    for element in elements:
        if isinstance(element, Group):
            yield from _flatten(element.then + element.otherwise)
        elif isinstance(element, Custom):
            yield from _flatten(argument for argument in element.arguments if not isinstance(argument, str))
        elif isinstance(element, Directive) and element.name in ("qualified", "struct"):
            yield from _flatten(element.arguments)
        else:
            yield element


def _mentions(elements: Iterable[Element]) -> Iterator[Element]:
    """Yields all elements, including those inside directives."""
    for element in _flatten(elements):
        yield element
        if isinstance(element, TypeOf):
            yield from _mentions((element.argument,))
        elif isinstance(element, Directive):
            yield from _mentions(element.arguments)


def _place(text: str, name: str) -> Location | None:
    match = re.search(rf"\${re.escape(name)}\b", text)
    return locate(text, match.start() if match is not None else 0)
