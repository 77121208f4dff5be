# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the parsing of pipeline text into elements."""

from __future__ import annotations

import pytest

from mlir_shard.passes.resolution import Element, PipelineError, parse


def test_nesting() -> None:
    assert parse("builtin.module(a, func.func(b{x=1 y={p,q}},c),d{})") == (
        Element(
            "builtin.module",
            0,
            children=(
                Element("a", 15),
                Element(
                    "func.func",
                    18,
                    children=(Element("b", 28, "x=1 y={p,q}", 30), Element("c", 43)),
                ),
                Element("d", 46, "", 48),
            ),
        ),
    )


def test_several_at_the_top() -> None:
    assert [element.name for element in parse(" a , b\n")] == ["a", "b"]
    assert parse("") == ()
    assert parse("any()") == (Element("any", 0, children=()),)


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("builtin.module(a", 16, "expected ')' after the passes of 'builtin.module'"),
        ("a,,b", 2, "expected the name of a pass or an operation"),
        ("a)", 1, "unexpected ')'"),
        ("a b", 2, "unexpected 'b'"),
        ("a{x=1", 1, "expected } to match the {"),
        ("a{x={'}", 5, "expected ' to match the '"),
        ("a{x=1}(b)", 2, "'a' contains passes and cannot have options"),
        ("a(b,)", 4, "expected the name of a pass or an operation"),
        ("{x}", 0, "expected the name of a pass or an operation"),
    ],
)
def test_malformed(text: str, offset: int, message: str) -> None:
    with pytest.raises(PipelineError) as refused:
        parse(text)
    assert (refused.value.message, refused.value.offset, refused.value.text) == (message, offset, text)
