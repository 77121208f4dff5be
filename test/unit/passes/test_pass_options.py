# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of options of passes as text."""

from __future__ import annotations

import enum
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.passes.options import (
    Option,
    OptionError,
    format_value,
    read_options,
    split_list,
    split_options,
    without_delimiters,
)


class Order(enum.Enum):
    BREADTH = "breadth-first"
    DEPTH = "depth-first"


def read(type_: Any, text: str, choices: tuple[str, ...] | None = None) -> Any:
    known = (Option("the-option", "the_option", type_, None, "", choices),)
    return read_options(text, known, "a-pass")["the_option"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("a=1 b=two", [("a", "1", 0), ("b", "two", 4)]),
        ("flag  other=x", [("flag", None, 0), ("other", "x", 6)]),
        ("a={x, y} b", [("a", "x, y", 0), ("b", None, 9)]),
        ("a='x = {' b=\"y z\"", [("a", "x = {", 0), ("b", "y z", 10)]),
        ("a={p={q r}}", [("a", "p={q r}", 0)]),
        ("a=f(x,y){k=v}", [("a", "f(x,y){k=v}", 0)]),
        ("a={b}{c}", [("a", "{b}{c}", 0)]),
        ("a= b=1", [("a", "", 0), ("b", "1", 3)]),
    ],
)
def test_split(text: str, found: list[tuple[str, str | None, int]]) -> None:
    assert list(split_options(text)) == found


@pytest.mark.parametrize(("text", "offset"), [("a={b", 2), ("x=1 a='b", 6), ("=3", 0), ("a={'}", 3)])
def test_split_refuses(text: str, offset: int) -> None:
    with pytest.raises(OptionError) as refused:
        list(split_options(text))
    assert refused.value.offset == offset


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (bool, "the-option", True),
        (bool, "the-option=false", False),
        (bool, "the-option=1", True),
        (bool, "the_option=0", False),
        (int, "the-option=-3", -3),
        (int, "the-option=0x10", 16),
        (float, "the-option=2.5e-3", 0.0025),
        (str, "the-option={a b}", "a b"),
        (Order, "the-option=depth-first", Order.DEPTH),
        (Literal["x", "y"], "the-option=y", "y"),
        (int | None, "the-option=none", None),
        (int | None, "the-option=4", 4),
        (tuple[int, ...], "the-option=1,2,3", (1, 2, 3)),
        (tuple[int, ...], "the-option={}", ()),
        (tuple[str, ...], 'the-option={a,"b,c"}', ("a", "b,c")),
        (tuple[Order, ...], "the-option=depth-first,breadth-first", (Order.DEPTH, Order.BREADTH)),
    ],
)
def test_read(type_: Any, text: str, value: Any) -> None:
    found = read(type_, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (bool, "the-option=maybe", "option 'the-option' of 'a-pass' expects true or false, got 'maybe'"),
        (int, "the-option=1.5", "option 'the-option' of 'a-pass' expects an integer, got '1.5'"),
        (int, "the-option", "option 'the-option' of 'a-pass' expects an integer, got nothing"),
        (int | None, "the-option=x", "option 'the-option' of 'a-pass' expects an integer or none, got 'x'"),
        (float, "the-option=x", "option 'the-option' of 'a-pass' expects a number, got 'x'"),
        (Order, "the-option=x", "option 'the-option' of 'a-pass' expects breadth-first or depth-first, got 'x'"),
        (tuple[int, ...], "the-option=1,x", "option 'the-option' of 'a-pass' expects a list of an integer, got '1,x'"),
        (int, "the-optoin=1", "'a-pass' has no option 'the-optoin'; did you mean 'the-option'?"),
        (int, "zzz=1", "'a-pass' has no option 'zzz': its options are the-option"),
        (int, "the-option=1 the-option=2", "option 'the-option' of 'a-pass' is given twice"),
    ],
)
def test_read_refuses(type_: Any, text: str, message: str) -> None:
    with pytest.raises(OptionError) as refused:
        read(type_, text)
    assert refused.value.message == message


def test_choices() -> None:
    assert read(str, "the-option=fast", choices=("fast", "small")) == "fast"
    with pytest.raises(OptionError, match=r"expects fast or small, got 'fsat'; did you mean 'fast'\?"):
        read(str, "the-option=fsat", choices=("fast", "small"))


def test_no_options() -> None:
    with pytest.raises(OptionError, match="'a-pass' has no option 'x': it has no options"):
        read_options("x=1", (), "a-pass")


texts = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="\"'{}"))


@given(
    st.tuples(
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        texts,
        st.lists(texts.filter(bool)),
        st.sampled_from(Order),
    )
)
def test_what_is_written_is_read(values: tuple[bool, int, float, str, list[str], Order]) -> None:
    types = (bool, int, float, str, tuple[str, ...], Order)
    known = tuple(Option(f"o{i}", f"o{i}", type_, None, "") for i, type_ in enumerate(types))
    expected = {f"o{i}": tuple(value) if isinstance(value, list) else value for i, value in enumerate(values)}
    text = " ".join(f"{field}={format_value(value)}" for field, value in expected.items())
    assert read_options(text, known, "a-pass") == expected


@pytest.mark.parametrize(
    ("text", "inside"), [("{a=b}", "a=b"), (" 'a' ", "a"), ("{a} {b}", "{a} {b}"), ("a", "a"), ("{a={b}}", "a={b}")]
)
def test_without_delimiters(text: str, inside: str) -> None:
    assert without_delimiters(text) == inside


def test_split_list() -> None:
    assert split_list("a, {b,c} ,'d,e'") == ["a", "b,c", "d,e"]
    assert split_list("  ") == []
