# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the scanner of the native core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard import _native


def names(text: str) -> list[str]:
    return [text[offset:].split(" ")[0] for offset in _native.find_names(text, ["sdy", "my"])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sdy.mesh @m", ["sdy.mesh"]),
        ("%0 = sdy.reshard %a", ["sdy.reshard"]),
        ('"sdy.reshard" (%a)', ['"sdy.reshard"']),
        ("#sdy.sharding<@m> x", ["#sdy.sharding<@m>"]),
        ("#sdy<manual_axes{}> x", ["#sdy<manual_axes{}>"]),
        ("!my.type x", ["!my.type"]),
        ("my.op sdy.op other.op", ["my.op", "sdy.op"]),
        ("{sdy.sharding = 1}", ["sdy.sharding"]),
        ('"a sdy.mesh in a string"', []),
        ('"escaped \\" sdy.mesh" x', []),
        ("// sdy.mesh in a comment", []),
        ("a / sdy.mesh x", ["sdy.mesh"]),
        ("%sdy.x @sdy.y ^sdy.z", []),
        ("not_sdy.mesh my_sdy.mesh x.sdy.mesh", []),
        ("sdyx.mesh sdy mesh", []),
        ("sdy<a", []),
        ('"unterminated\nsdy.mesh x', ["sdy.mesh"]),
        ("", []),
    ],
)
def test_names(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("(a)", 2),
        ("(a(b)[c]{d})", 11),
        ("(>)", 2),
        ('(")")', 4),
        ("( // )\n)", 7),
        ("<(d0) -> (d0)>", 13),
        ("<(d0) : (d0 >= 0)>", 17),
        ("<@m, [{}]>", 9),
        ("<<a>>", 4),
        ("{ a -> b }", 9),
        ("(a]", -1),
        ("(a", -1),
        ("<a", -1),
    ],
)
def test_closing(text: str, closing: int) -> None:
    assert _native.find_closing(text, 0) == closing


def test_closing_outside_of_the_text() -> None:
    with pytest.raises(IndexError, match="no bracket at 3"):
        _native.find_closing("abc", 3)


def test_wide_characters_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond Latin-1"):
        _native.find_names("\u2192", ["sdy"])


nested = st.recursive(
    st.sampled_from(["a", '"([{"', "->", ", "]),
    lambda inner: st.tuples(st.sampled_from(["()", "[]", "{}"]), st.lists(inner)).map(
        lambda pair: pair[0][0] + "".join(pair[1]) + pair[0][1]
    ),
    max_leaves=20,
)


@given(st.lists(nested), st.text(alphabet="ab ,", max_size=5))
def test_closing_of_what_was_built(inside: list[str], after: str) -> None:
    text = "(" + "".join(inside) + ")"
    assert _native.find_closing(text + after, 0) == len(text) - 1


@pytest.mark.parametrize(
    "text",
    [
        "module {}",
        ' // }\n#map = affine_map<(d0) ->\n (d0)>\n!t = i32\nmodule @"a b" attributes {x = "}"} {\n // {\n} // more\n',
        "module @name {\n} loc(#loc)\n#loc = loc(unknown)",
    ],
)
def test_one_module(text: str) -> None:
    assert _native.is_one_module(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "func.func @f() { return }",
        "module {} module {}",
        "module {",
        "modules {}",
        '"builtin.module"() ({}) : () -> ()',
    ],
)
def test_not_one_module_that_can_be_told(text: str) -> None:
    assert not _native.is_one_module(text)


@pytest.mark.parametrize(("text", "found"), [("([{", 2), ("([)]{}", None), ('"(((" ([//{{\n]) {', None), ("((\n(", 3)])
def test_a_bracket_inside_of_two_others(text: str, found: int | None) -> None:
    assert _native.find_deep_bracket(text, 2) == found
