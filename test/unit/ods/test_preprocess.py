# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the preprocessor of `.td` files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.ods.loader import preprocess
from mlir_shard.ods.source import OdsError, Source


def run(text: str, defined: set[str] | None = None) -> str:
    return preprocess(Source("t.td", text), defined if defined is not None else set())


def test_conditions_leave_out_lines_and_keep_places() -> None:
    text = "#ifdef A\nkept\n#else\ndropped\n#endif\nend"
    assert run(text, {"A"}).split("\n") == [" " * 8, "kept", " " * 5, " " * 7, " " * 6, "end"]
    assert "dropped" in run(text) and "kept" not in run(text)


def test_conditions_nest() -> None:
    text = "#ifndef A\n#ifdef B\nx\n#else\ny\n#endif\nz\n#endif"
    assert run(text).split() == ["y", "z"]
    assert run(text, {"B"}).split() == ["x", "z"]
    assert run(text, {"A"}).split() == []


def test_define_counts_only_where_it_is_reached() -> None:
    defined: set[str] = set()
    run("#ifdef A\n#define B\n#endif\n#define C", defined)
    assert defined == {"C"}


def test_directives_in_code_and_strings_are_text() -> None:
    code = '[{\n#include "x"\n#ifdef NOT_A_DIRECTIVE\n}] "// no comment"'
    assert run(code) == code


def test_comments_become_blanks() -> None:
    assert run("a // b\n/* c\n d */ e") == "a     \n    \n      e"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("\n#ifdef A\nx", "unterminated conditional; expected '#endif'", "t.td:2:1"),
        ("x\n  #endif", "'#endif' without '#ifdef' or '#ifndef'", "t.td:2:3"),
        ("#else", "'#else' without '#ifdef' or '#ifndef'", "t.td:1:1"),
        ("#define", "expected the name of a macro after '#define'", "t.td:1:1"),
    ],
)
def test_mistakes(text: str, message: str, place: str) -> None:
    with pytest.raises(OdsError) as caught:
        run(text)
    assert str(caught.value).startswith(f"{place}: error: {message}")


@given(st.text(alphabet='ab"/*[{}]\n\\ ', max_size=60))
def test_nothing_moves(text: str) -> None:
    assert [len(line) for line in run(text).split("\n")] == [len(line) for line in text.split("\n")]
