# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of matching diagnostics with the expectations in the input."""

from __future__ import annotations

import pytest

from mlir_shard.passes.diagnostic import Diagnostic, Position
from mlir_shard.tools.session import Verifier
from mlir_shard.tools.source import Source


def problems(text: str, *diagnostics: Diagnostic, only_expected: bool = False) -> list[str]:
    verifier = Verifier(Source("in.mlir", text.encode()), only_expected)
    for one in diagnostics:
        verifier.report(one)
    return [str(one) for one in verifier.problems()]


def at(line: int, message: str = "it is wrong", severity: str = "error", **more: Diagnostic) -> Diagnostic:
    return Diagnostic(severity, message, Position("in.mlir", line, 1), notes=tuple(more.values()))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{is wrong}}", 1),
        ("// expected-error@+1 {{it is}}\nop", 2),
        ("// expected-error @+2{{it is}}\n\nop", 3),
        ("op\n\n// expected-error @-2 {{it is wrong}}", 1),
        ("// expected-error@below {{it is}}\n// expected-note @below {{}}\nop", 3),
        ("op\n// expected-error @below {{a}}\n// expected-error @above {{it is}}", 1),
        ("// expected-error-re @+1 {{it {{is|was}} {{w.*}}}}\nop", 2),
        ("op // expected-error {{is wrong}}  \r", 1),
    ],
)
def test_where(text: str, line: int) -> None:
    left = [one for one in problems(text, at(line)) if "expected note" not in one and '"a"' not in one]
    assert left == []
    assert any("unexpected error: it is wrong" in one for one in problems(text, at(line + 1)))


def test_missing() -> None:
    assert problems("a\n  // expected-warning {{w}}\n// expected-error-re {{x{{y}}}}") == [
        'in.mlir:2:6: error: expected warning "w" was not produced',
        'in.mlir:3:4: error: expected error "x{{y}}" was not produced',
    ]


def test_unexpected() -> None:
    assert problems("op", at(1), Diagnostic("remark", "so", place='"name"')) == [
        "in.mlir:1:1: error: unexpected error: it is wrong",
        '"name": error: unexpected remark: so',
    ]
    assert problems("op // expected-remark {{so}}", at(1), only_expected=True) == [
        'in.mlir:1:7: error: expected remark "so" was not produced'
    ]


def test_severity_counts() -> None:
    assert len(problems("op // expected-warning {{wrong}}", at(1))) == 2


def test_each_is_matched_once() -> None:
    text = "// expected-error @+2 {{wrong}}\n// expected-error @+1 {{wrong}}\nop"
    assert problems(text, at(3), at(3)) == []
    assert len(problems(text, at(3), at(3), at(3))) == 1


def test_notes_are_diagnostics() -> None:
    diagnostic = at(1, note=at(2, "as it is here", "note"))
    assert problems("op // expected-error {{wrong}}\nx // expected-note {{here}}", diagnostic) == []
    assert len(problems("op // expected-error {{wrong}}\nx", diagnostic)) == 1


def test_unknown_positions_and_other_files() -> None:
    text = "// expected-error @unknown {{wrong}}"
    assert problems(text, Diagnostic("error", "wrong")) == []
    assert len(problems(text, at(1))) == 2
    elsewhere = Diagnostic("error", "wrong", Position("other.mlir", 1, 1))
    assert len(problems("op // expected-error {{wrong}}", elsewhere)) == 2


def test_a_pattern_that_is_none() -> None:
    assert (
        "in.mlir:1:4: error: invalid pattern in the expected message" in problems("// expected-error-re {{a{{(}}}}")[0]
    )


def test_text_is_no_pattern() -> None:
    assert problems("op // expected-error {{a.c}}", at(1, "abc")) != []
    assert problems("op // expected-error {{a.c (}}", at(1, "a.c (")) == []
