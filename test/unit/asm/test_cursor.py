# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the tokens of MLIR text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.asm.cursor import AsmSyntaxError, Cursor, escape, quoted, unescape


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("f32, x", "f32"),
        ("tensor<4x?xf32, #enc<a>> loc", "tensor<4x?xf32, #enc<a>>"),
        ("!stablehlo.token)", "!stablehlo.token"),
        ("tensor<3x!quant.uniform<i32:f32, 2.0:15>> x", "tensor<3x!quant.uniform<i32:f32, 2.0:15>>"),
        ("(i1, f32) -> (f32, i1) x", "(i1, f32) -> (f32, i1)"),
        ("() -> () -> f32 x", "() -> ()"),
        ("!alias}", "!alias"),
    ],
)
def test_type(text: str, type_: str) -> None:
    assert Cursor(text).skip_type() == type_


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("1 : i32, x", "1 : i32"),
        ("-1.5e-3 : f32}", "-1.5e-3 : f32"),
        ("dense<[1, 2]> : tensor<2xi32> x", "dense<[1, 2]> : tensor<2xi32>"),
        ('"a, \\"b" x', '"a, \\"b"'),
        ("[1, {a = 2}] x", "[1, {a = 2}]"),
        ("@a::@b, x", "@a::@b"),
        ("#map, x", "#map"),
        ("#stablehlo.dot<lhs = [0]>, x", "#stablehlo.dot<lhs = [0]>"),
        ("affine_map<(d0) -> (d0 * 2)>, x", "affine_map<(d0) -> (d0 * 2)>"),
        ("array<i64: 1, 2>, x", "array<i64: 1, 2>"),
        ("(i1) -> f32, x", "(i1) -> f32"),
        ("true, x", "true"),
    ],
)
def test_attribute(text: str, attribute: str) -> None:
    assert Cursor(text).skip_attribute() == attribute


def test_words_end_where_they_end() -> None:
    assert not Cursor("meshes").at("mesh")
    assert Cursor("mesh<").at("mesh")
    assert Cursor("  // comment\n mesh").accept("mesh")


def test_errors_say_where() -> None:
    cursor = Cursor("a  )")
    cursor.identifier()
    with pytest.raises(AsmSyntaxError, match=r"expected '\(', found `\)`") as caught:
        cursor.expect("(")
    assert caught.value.offset == 3


def test_unclosed_bracket() -> None:
    with pytest.raises(AsmSyntaxError, match=r"'\[' is never closed"):
        Cursor("[1, 2").skip_bracketed()


@given(st.text(alphabet=st.characters(max_codepoint=255)))
def test_escapes(characters: str) -> None:
    assert unescape(escape(characters)) == characters


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_printed_characters_are_escaped_as_among_others(characters: str) -> None:
    assert escape(characters) + r"\00" == escape(characters + "\0")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_string_literals(text: str) -> None:
    assert Cursor(quoted(text)).string() == text
    assert quoted(text).isascii()


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        (r'  "a\zz"', 4, r"unknown escape `\z` in a string literal"),
        (r'"\4"', 1, r"unknown escape `\4` in a string literal"),
        ('"' + r"\41" * 3 + r'\x"', 10, r"unknown escape `\x` in a string literal"),
    ],
)
def test_unknown_escapes(text: str, offset: int, message: str) -> None:
    with pytest.raises(AsmSyntaxError) as raised:
        Cursor(text).string()
    assert (raised.value.offset, raised.value.message) == (offset, message)
    with pytest.raises(AsmSyntaxError):
        Cursor("@" + text.strip()).symbol()


def test_integers_of_many_digits() -> None:
    assert Cursor("9" * 40).integer() == int("9" * 40)
    with pytest.raises(AsmSyntaxError, match="an integer of 5000 digits is too large") as raised:
        Cursor("  " + "9" * 5000).integer()
    assert raised.value.offset == 2
