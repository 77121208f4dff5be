# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the messages and locations of mistakes in `.td` files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.ods.reader import read
from mlir_shard.ods.source import OdsError

# The mistake is on line 5 of the file.
PREFIX = """\
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
def D : Dialect { let name = "d"; let cppNamespace = "::d"; }
class D_Op<string m, list<Trait> t = []> : Op<D, m, t>;
"""


def failure(tmp_path: Path, text: str) -> OdsError:
    path = tmp_path / "t.td"
    path.write_text(PREFIX + text, encoding="utf-8")
    with pytest.raises(OdsError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('def A : D_Op<"a", [Pur]>;', "5:20", "'Pur' is not defined; did you mean 'Pure'?"),
        ('def A : D_Opp<"a">;', "5:9", "unknown class 'D_Opp'; did you mean 'D_Op'?"),
        ('def A : D_Op<"a", [], 3>;', "5:23", "class 'D_Op' expects 2 arguments, not 3"),
        ("def A : D_Op;", "5:9", "class 'D_Op' needs a value for its parameter 'm'"),
        ('def A : D_Op<"a", n = []>;', "5:19", "class 'D_Op' has no parameter 'n'"),
        (
            'def A : D_Op<"a", [Pure, AnyType]>;',
            "5:19",
            "element 1 of argument 't' of 'D_Op' must be a record of class 'Trait', not 'AnyType'",
        ),
        (
            'def A : D_Op<"a"> { let sumary = "x"; }',
            "5:25",
            "'A' has no field 'sumary' to set; did you mean 'summary'?",
        ),
        ('def A : D_Op<"a"> { let summary = 3; }', "5:35", "'summary' must be a string, not '3'"),
        ('let summry = "x" in def A : D_Op<"a">;', "5:5", "'A' has no field 'summry' to set; did you mean 'summary'?"),
        ('def A : D_Op<"a">;\ndef A : D_Op<"b">;', "6:5", "'A' is already defined"),
        ('def A : D_Op<"a">;\ndef B : D_Op<"a">;', "6:5", "'a' is defined twice"),
        (
            "class D_Op<int x> { int y = x; }\nclass D_Op<int x> { int y = x; }",
            "6:7",
            "class 'D_Op' is already defined",
        ),
        ("def A { int a = A.b; }", "5:19", "'A' has no field 'b'"),
        ("class A { int a = b; int b = 1; }\ndef B : A;", "5:19", "'b' is not defined"),
        ("class A { int a = 1; }\ndef B : A { let a = !add(a, c); }", "6:29", "'c' is not defined"),
        ("class A<int n> { int m = n; }\ndef B { int x = A<3>.k; }", "6:22", "'A' has no field 'k'"),
        ("class A<int n>;\ndef B { A a = A; }", "6:15", "'A' is a class; write 'A<...>' for a record of it"),
        ("def A { Nonesuch x = ?; }", "5:9", "unknown class 'Nonesuch'"),
        ("def A { int x = !plus(1, 2); }", "5:17", "unknown operator '!plus'"),
        ('def A { int x = !add(1, "2"); }', "5:17", "invalid arguments of '!add': expected integers"),
        ("def A { int x = !head([]<int>); }", "5:17", "invalid arguments of '!head': the list is too short"),
        ('def A { int x = !if("yes", 1, 2); }', "5:21", 'a condition must be 0 or 1, not the string "yes"'),
        ('assert !eq(1, 2), "one is not " # 2;', "5:8", "assertion failed: one is not 2"),
        ('def A : D_Op<"a" {}', "5:18", "unexpected '{'; expected '#' or ',' or '>'"),
        ("def A : D_Op<", "5:14", "unexpected end of file"),
        ('def A : D_Op<"a> {}', "5:14", "unterminated string"),
        ("def A { code c = [{ x ; }", "5:18", "unterminated code block; expected '}]'"),
        ("def A { int let = 1; }", "5:13", "unexpected 'let'"),
        ("multiclass M;", "5:1", "multiclasses are not supported; write out the defs"),
        ("defm M : N;", "5:1", "multiclasses are not supported; write out the defs"),
        ('include "nowhere.td"', "5:1", "'nowhere.td' not found in the directories"),
    ],
)
def test_language(tmp_path: Path, text: str, place: str, message: str) -> None:
    first = str(failure(tmp_path, text)).split("\n")[0]
    assert first.startswith(f"{tmp_path / 't.td'}:{place}: error: {message}")


@pytest.mark.parametrize(
    ("body", "column", "message"),
    [
        ("let arguments = (ins AnyTyp:$x);", 42, "'AnyTyp' is not defined; did you mean 'AnyType'?"),
        ("let arguments = (ins AnyType:$x, I64Attr:$x);", 54, "'A' has two arguments named 'x'"),
        ('let arguments = (ins "int":$x);', 42, "'x': the string \"int\" is not a constraint"),
        ("let arguments = (ins Pure:$x);", 42, "argument 'x': 'Pure' is neither a type nor an attribute constraint"),
        ("let results = (outs I64Attr:$x);", 41, "result 'x': 'I64Attr' is not a type constraint"),
        ("let regions = (region AnyType:$x);", 43, "region 'x': 'AnyType' is not a region constraint"),
        ("let successors = (successor AnySuccessor:$x);", 49, "ops with successors are not supported"),
    ],
)
def test_operations(tmp_path: Path, body: str, column: int, message: str) -> None:
    first = str(failure(tmp_path, f'def A : D_Op<"a"> {{ {body} }}')).split("\n")[0]
    assert first == f"{tmp_path / 't.td'}:5:{column}: error: {message}"


def test_the_diagnostic_shows_the_line_and_where_it_came_from(tmp_path: Path) -> None:
    error = failure(tmp_path, "class Half<int n> {\n\tint half = !div(n, zero);\n}\ndef Four : Half<4>;")
    path = tmp_path / "t.td"
    assert str(error).split("\n") == [
        f"{path}:6:21: error: 'zero' is not defined",
        "\tint half = !div(n, zero);",
        "\t                   ^",
        f"{path}:8:5: note: in 'Four'",
        "def Four : Half<4>;",
        "    ^",
    ]


def test_fields_that_depend_on_each_other(tmp_path: Path) -> None:
    error = failure(tmp_path, "class A { int a = 0; int b = a; let a = b; }\ndef R : A;")
    assert "depends on itself" in error.message


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(OdsError, match="No such file"):
        read(tmp_path / "missing.td")
    (tmp_path / "latin.td").write_bytes(b"// \xe9")
    with pytest.raises(OdsError, match="not UTF-8"):
        read(tmp_path / "latin.td")


def test_the_dialect_has_to_be_clear(tmp_path: Path) -> None:
    path = tmp_path / "t.td"
    path.write_text("def X;")
    with pytest.raises(OdsError, match="defines no dialect"):
        read(path)
    two = 'include "mlir/IR/OpBase.td"\ndef D : Dialect { let name = "d"; }\ndef E : Dialect { let name = "e"; }\n'
    path.write_text(two)
    with pytest.raises(OdsError, match="defines several dialects, d, e: specify one of them"):
        read(path)
    assert read(path, dialect="e").name == "e"
    with pytest.raises(OdsError, match="defines no dialect 'f'"):
        read(path, dialect="f")
    path.write_text(two + 'def A : Op<E, "a">;')
    assert read(path).name == "e"
