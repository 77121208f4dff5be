# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the evaluation of TableGen programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.ods.program import Program
from mlir_shard.ods.records import UNSET, Dag, Record


@pytest.fixture
def evaluate(tmp_path: Path):
    def run(text: str) -> Program:
        path = tmp_path / "t.td"
        path.write_text(text, encoding="utf-8")
        return Program(path)

    return run


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("int", "42", 42),
        ("int", "-7", -7),
        ("int", "0x1F", 31),
        ("int", "0b101", 5),
        ("bit", "true", 1),
        ("int", "?", UNSET),
        ("string", '"a\\n\\"b\\""', 'a\n"b"'),
        ("string", '"a" "b"', "ab"),
        ("code", "[{ x }]", " x "),
        ("string", '"a" # "b" # 3', "ab3"),
        ("string", '"a" # unknown', "aunknown"),
        ("list<int>", "[1, 2] # [3]", (1, 2, 3)),
        ("list<int>", "[]<int>", ()),
        ("int", "[1, 2, 3][1]", 2),
        ("int", "!add(1, 2, 3)", 6),
        ("int", "!if(!lt(1, 2), 3, 4)", 3),
        ("int", '!if(!eq("a", "b"), !head([]<int>), 4)', 4),
        ("int", "!cond(!eq(1, 2): 1, true: 2)", 2),
        ("list<int>", "!foreach(x, [1, 2], !mul(x, 10))", (10, 20)),
        ("list<int>", "!filter(x, [1, 2, 3], !gt(x, 1))", (2, 3)),
        ("int", "!foldl(0, [1, 2, 3], sum, x, !add(sum, x))", 6),
        ("string", '!interleave([1, 2], ", ")', "1, 2"),
        ("string", '!subst("a", "b", "banana")', "bbnbnb"),
        ("string", '!strconcat("x", !tolower("Y"))', "xy"),
        ("list<int>", "!listconcat([1], [2, 3])", (1, 2, 3)),
        ("list<int>", "!range(2, 5)", (2, 3, 4)),
        ("int", "!size([1, 2])", 2),
        ("bit", '!empty("")', 1),
        ("int", '!find("banana", "nan")', 2),
        ("string", '!substr("banana", 2, 3)', "nan"),
        ("list<int>", "!listremove([1, 2, 3], [2])", (1, 3)),
    ],
)
def test_values(evaluate, type_: str, text: str, value: object) -> None:
    assert evaluate(f"def R {{ {type_} x = {text}; }}").records["R"]["x"] == value


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=8))
def test_sums(tmp_path_factory: pytest.TempPathFactory, numbers: list[int]) -> None:
    path = tmp_path_factory.mktemp("td") / "t.td"
    path.write_text(f"def R {{ int x = !add({', '.join(map(str, numbers))}, 0); list<int> l = {numbers}; }}")
    record = Program(path).records["R"]
    assert record["x"] == sum(numbers)
    assert record["l"] == tuple(numbers)


def test_dag(evaluate) -> None:
    program = evaluate('def ins; def R { dag d = (ins "int":$a, 3, $b); }')
    dag = program.records["R"]["d"]
    assert isinstance(dag, Dag)
    assert dag.operator is program.records["ins"]
    assert dag.arguments == (("int", "a"), (3, ""), (UNSET, "b"))


def test_fields_see_what_is_set_later(evaluate) -> None:
    text = """
    class A { string name = "a"; string greeting = "hello " # name; }
    class B<string n> : A { let name = n; }
    def R : B<"b">;
    def S : B<"c"> { let name = "s"; }
    """
    records = evaluate(text).records
    assert records["R"]["greeting"] == "hello b"
    assert records["S"]["greeting"] == "hello s"


def test_let_may_use_the_former_value(evaluate) -> None:
    text = """
    class A { list<int> l = [1]; }
    class B : A { let l = l # [2]; }
    def R : B { let l = l # [3]; }
    let l = [9] in def S : B;
    let l = l # [8] in { def T : B { let l = l # [7]; } }
    """
    records = evaluate(text).records
    assert records["R"]["l"] == (1, 2, 3)
    assert records["S"]["l"] == (9,)
    assert records["T"]["l"] == (1, 2, 8, 7)


def test_template_parameters(evaluate) -> None:
    text = """
    class A<int x, int y = !add(x, 1)> { int a = x; int b = y; }
    def P : A<1>;
    def Q : A<1, 5>;
    def R : A<y = 7, x = 3>;
    def S { int z = A<4>.b; A whole = A<6>; }
    """
    records = evaluate(text).records
    assert [(records[n]["a"], records[n]["b"]) for n in "PQR"] == [(1, 2), (1, 5), (3, 7)]
    assert records["S"]["z"] == 5
    whole = records["S"]["whole"]
    assert isinstance(whole, Record) and whole.is_anonymous and whole["b"] == 7
    assert whole.instance_arguments == (6,)


def test_a_field_hides_a_parameter_only_where_its_class_knows_it(evaluate) -> None:
    text = """
    class Named { string text = "field"; }
    class Other<string text> { string got = text; }
    def R : Named, Other<"parameter">;
    """
    assert evaluate(text).records["R"]["got"] == "parameter"


def test_statements(evaluate) -> None:
    text = """
    defvar base = 10;
    class N<int v> { int value = v; }
    foreach i = [1, 2] in { def "N" # i : N<!add(base, i)>; }
    if !eq(base, 10) then def Yes : N<1>; else def No : N<0>;
    def : N<3>;
    def M : N<0> { defvar local = !mul(base, 2); let value = local; assert !eq(value, 20), "wrong"; }
    """
    program = evaluate(text)
    assert {name: record["value"] for name, record in program.records.items() if not name.startswith("anonymous")} == {
        "N1": 11,
        "N2": 12,
        "Yes": 1,
        "M": 20,
    }
    assert [record["value"] for record in program.defs("N")] == [11, 12, 1, 3, 20]


def test_casts(evaluate) -> None:
    text = """
    class A { int x = 1; }
    class B : A;
    def First : B;
    def R {
      string name = !cast<string>(First);
      int x = !cast<A>("First").x;
      bit isA = !isa<A>(First);
      bit exists = !exists<B>("First");
      bit missing = !exists<B>("Second");
    }
    """
    record = evaluate(text).records["R"]
    assert [record[field] for field in record] == ["First", 1, 1, 1, 0]


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.td").write_text('#ifndef A_TD\n#define A_TD\ninclude "b.td"\ndef A;\n#endif\n')
    (tmp_path / "sub" / "b.td").write_text('include "a.td"\ndef B;\n')
    (tmp_path / "t.td").write_text('include "a.td"\ninclude "a.td"\ndef C;\n')
    program = Program(tmp_path / "t.td", [tmp_path / "sub"])
    assert list(program.records) == ["B", "A", "C"]


def test_upstream_is_there_without_being_there(evaluate) -> None:
    text = 'include "mlir/IR/OpBase.td"\ninclude "mlir/Interfaces/SideEffectInterfaces.td"\ndef R { Trait t = Pure; }'
    program = evaluate(text)
    pure = program.records["R"]["t"]
    assert pure is program.records["Pure"] and pure.is_a("TraitList")
