# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of assembly formats as text and as elements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.ods.assembly_format import (
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
from mlir_shard.ods.format_parser import parse
from mlir_shard.ods.source import LocatedText, Location, OdsError, Source


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("", ()),
        ("$x `foo` attr-dict", (Variable("x"), Literal("foo"), Directive("attr-dict"))),
        ("`a````=```$x", (Literal("a"), Whitespace(""), Literal("="), Whitespace(""), Variable("x"))),
        ("`\\n` ` `", (Whitespace("\n"), Whitespace(" "))),
        ("type($x) type(operands)", (TypeOf(Variable("x")), TypeOf(Directive("operands")))),
        (
            "functional-type(operands, $r)",
            (Directive("functional-type", (Directive("operands"), Variable("r"))),),
        ),
        (
            'custom<F>($x, ref(type($y)), "\\"text\\"", "1 + 2") custom<Nothing>()',
            (
                Custom("F", (Variable("x"), Directive("ref", (TypeOf(Variable("y")),)), "text", "1 + 2")),
                Custom("Nothing"),
            ),
        ),
        ("struct(params)", (Directive("struct", (Directive("params"),)),)),
        ("(`,` $x^)?", (Group((Literal(","), Variable("x")), (), 1),)),
        ("(`]`) : ($x^ `]`)?", (Group((Literal("]"),), (Variable("x"), Literal("]")), 0, "otherwise"),)),
        (
            "(`a` (`b` $y^)? $x^)?",
            (Group((Literal("a"), Group((Literal("b"), Variable("y")), (), 1), Variable("x")), (), 2),),
        ),
    ],
)
def test_parse(text: str, elements: AssemblyFormat) -> None:
    assert parse(text) == elements


def test_the_anchor_of_a_group() -> None:
    (group,) = parse("(`]`) : ($x^ `]`)?")
    assert isinstance(group, Group)
    assert group.anchor_element == Variable("x")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("$x attr-dit", 4, "unknown directive 'attr-dit'; did you mean 'attr-dict'?"),
        ("oilist(`a` $x)", 1, "'oilist' is not supported; write an optional group for each clause"),
        ("`a", 1, "unterminated literal; expected '`'"),
        ("$x `a b`", 4, "'a b' is neither a keyword nor punctuation"),
        ("$x `#`", 4, "'#' is neither a keyword nor punctuation"),
        ("$ x", 1, "'$' must be followed by a name"),
        ("functional-type(operands)", 1, "'functional-type' expects 2 arguments, not 1"),
        ('custom<F>($x, "a)', 15, "unterminated string"),
        ("type($x", 8, "unexpected end of the assembly format"),
        ("$x ^", 4, "unexpected '^'"),
        ("($x)?", 1, "an optional group needs one element marked '^', but this has none"),
        ("`a` ($x^ $y^)?", 5, "an optional group needs one element marked '^', but this has 2"),
        ("($x^) : ($y^)?", 1, "an optional group needs one element marked '^', but this has 2"),
        ("()?", 1, "an optional group must not be empty"),
    ],
)
def test_mistakes(text: str, column: int, message: str) -> None:
    with pytest.raises(OdsError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.location is not None and caught.value.location.column == column


def test_mistakes_are_placed_in_the_file_the_format_comes_from() -> None:
    source = Source("t.td", "let assemblyFormat = [{\n    $x\n    attr-dct\n  }];")
    text = LocatedText("\n    $x\n    attr-dct\n  ", Location(source, 1, 24))
    with pytest.raises(OdsError) as caught:
        parse(text)
    assert str(caught.value).startswith("t.td:3:5: error: unknown directive 'attr-dct'")


names = st.from_regex(r"[a-z][a-z_0-9]{0,5}", fullmatch=True)
variables = names.map(Variable)
arguments = st.one_of(
    variables, variables.map(TypeOf), st.sampled_from(["operands", "results", "regions"]).map(Directive)
)
simple: st.SearchStrategy[Element] = st.one_of(
    variables,
    arguments,
    names.map(Literal),
    st.sampled_from([*"()<>[]{},:=?", "->"]).map(Literal),
    st.sampled_from(["", " "]).map(Whitespace),
    st.builds(Custom, names.map(str.capitalize), st.lists(arguments, max_size=3).map(tuple)),
    st.builds(lambda a, b: Directive("functional-type", (a, b)), arguments, arguments),
)


def groups(elements: st.SearchStrategy[Element]) -> st.SearchStrategy[Element]:
    branch = st.lists(elements, min_size=1, max_size=4).map(tuple)
    first = st.builds(
        lambda then, other, k: Group(then, other, k % len(then)), branch, branch | st.just(()), st.integers(0, 9)
    )
    second = st.builds(
        lambda then, other, k: Group(then, other, k % len(other), "otherwise"), branch, branch, st.integers(0, 9)
    )
    return first | second


formats = st.lists(st.recursive(simple, groups, max_leaves=12), max_size=6).map(tuple)


def written(element: object) -> str:
    """Returns the text of an element. It is the inverse of the tested function."""
    if isinstance(element, (Literal, Whitespace)):
        return f"`{element.text}`"
    if isinstance(element, Variable):
        return f"${element.name}"
    if isinstance(element, TypeOf):
        return f"type({written(element.argument)})"
    if isinstance(element, Group):
        branches = []
        for name, branch in (("then", element.then), ("otherwise", element.otherwise)):
            marked = [
                written(each) + ("^" if (name, index) == (element.anchor_branch, element.anchor) else "")
                for index, each in enumerate(branch)
            ]
            branches.append(f"({' '.join(marked)})")
        return (branches[0] if not element.otherwise else " : ".join(branches)) + "?"
    assert isinstance(element, (Custom, Directive))
    listed = ", ".join(map(written, element.arguments))
    if isinstance(element, Custom):
        return f"custom<{element.name}>({listed})"
    return f"{element.name}({listed})" if element.arguments else element.name


@given(formats)
def test_what_is_written_is_read(elements: AssemblyFormat) -> None:
    assert parse(" ".join(map(written, elements))) == elements


@given(st.text(alphabet='$ax`()?:^<>,"\\ -custom', max_size=30))
def test_any_text_is_a_format_or_a_diagnostic(text: str) -> None:
    try:
        parse(text)
    except OdsError as error:
        assert error.location is not None
        assert error.location.line <= text.count("\n") + 1
