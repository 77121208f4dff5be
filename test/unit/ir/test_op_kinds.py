# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of operations by kind: which operations count, and which do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.op_kinds import OpKinds, operations_of_results


def _module(body: str, signature: str = "%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>") -> Any:
    text = f"func.func @main({signature}) {{\n{body}\n return\n}}"
    context = mlir_shard.create_context()
    context.allow_unregistered_dialects = True
    return mlir_shard.parse(text, context)


def _kinds(body: str, *names: str, ignored: Sequence[str] = (), neighbours: bool = False) -> list[int]:
    return OpKinds(_module(body).operation, *names, ignored=ignored, neighbours=neighbours).kinds


def test_operands_do_not_count() -> None:
    body = """
      %0 = math.exp %a : tensor<4xf32>
      %1 = math.exp %0 : tensor<4xf32>
      %2 = math.exp %1 {x} : tensor<4xf32>
      %3 = math.sin %1 : tensor<4xf32>"""

    assert _kinds(body, "math.exp", "math.sin") == [0, 0, 1, 2]


def test_values_of_ignored_attributes_do_not_count() -> None:
    body = """
      %0 = math.exp %a {x = 1 : i32} : tensor<4xf32>
      %1 = math.exp %a {x = 2 : i32} : tensor<4xf32>
      %2 = math.exp %a : tensor<4xf32>"""

    assert _kinds(body, "math.exp", ignored=("x",)) == [0, 0, 1]
    assert _kinds(body, "math.exp") == [0, 1, 2]


_REDUCE = """
      "test.reduce"(%a) ({{
      ^bb0(%l: f32, %r: {type}):
        %s = {op} %{first}, %{second} : f32
        "test.yield"(%s) : (f32) -> ()
      }}) : (tensor<4xf32>) -> ()"""


@pytest.mark.parametrize(
    "other",
    [
        {"op": "arith.mulf"},
        {"first": "r", "second": "l"},
        {"first": "l", "second": "l"},
    ],
)
def test_what_is_in_regions_counts(other: dict[str, str]) -> None:
    given = {"op": "arith.addf", "first": "l", "second": "r", "type": "f32"}
    body = _REDUCE.format(**given) + _REDUCE.format(**given) + _REDUCE.format(**given | other)

    assert _kinds(body, "test.reduce") == [0, 0, 1]


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        ("%x = math.sin %a : tensor<4xf32>\n %y = math.sin %b : tensor<4xf32>", [0, 0]),
        ("%x = math.sin %a : tensor<4xf32>\n %y = math.cos %b : tensor<4xf32>", [0, 1]),
        ("%x = math.sin %a : tensor<4xf32>\n %y = math.sin %b : tensor<4xf32>\n math.cos %y : tensor<4xf32>", [0, 1]),
        (
            '%x:2 = "test.two"(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)\n'
            "%y = math.sin %x#1 : tensor<4xf32>",
            [0, 1],
        ),
    ],
)
def test_neighbours_that_make_operands_count(made: str, kinds: list[int]) -> None:
    first = "%x#0" if ":2" in made else "%x"
    body = f"{made}\n math.exp {first} : tensor<4xf32>\n math.exp %y : tensor<4xf32>"

    assert _kinds(body, "math.exp", neighbours=True) == kinds
    assert _kinds(body, "math.exp") == [0, 0]


@pytest.mark.parametrize(
    ("used", "kinds"),
    [
        ("math.sin %0 : tensor<4xf32>\n math.sin %1 : tensor<4xf32>", [0, 0]),
        ("math.sin %0 : tensor<4xf32>\n math.cos %1 : tensor<4xf32>", [0, 1]),
        ("math.sin %0 : tensor<4xf32>", [0, 1]),
        ("math.sin %0 : tensor<4xf32>\n arith.addf %1, %1 : tensor<4xf32>", [0, 1]),
        ("arith.addf %0, %c : tensor<4xf32>\n arith.addf %c, %1 : tensor<4xf32>", [0, 1]),
    ],
)
def test_neighbours_that_use_results_count(used: str, kinds: list[int]) -> None:
    body = f"%0 = math.exp %a : tensor<4xf32>\n %1 = math.exp %b : tensor<4xf32>\n {used}"

    assert _kinds(body, "math.exp", neighbours=True) == kinds


def test_where_asks_once_for_a_kind() -> None:
    module = _module(
        "%0 = math.exp %a : tensor<4xf32>\n %1 = math.exp %0 : tensor<4xf32>\n %2 = math.sin %1 : tensor<4xf32>"
    )
    asked: list[str] = []

    def is_wanted(op: Any) -> bool:
        asked.append(op.name)
        return op.name == "math.exp"

    found = OpKinds(module.operation, "math.exp", "math.sin").where(is_wanted)

    assert [one.name for one in found] == ["math.exp", "math.exp"]
    assert asked == ["math.exp", "math.sin"]


@pytest.mark.parametrize(
    ("once", "operands", "count"), [(False, 2, 2), (True, 2, 1), (False, 1, 3), (False, 0, 3), (True, 0, 2)]
)
def test_operations_of_results(once: bool, operands: int, count: int) -> None:
    module = _module(
        """
      %0 = math.exp %a : tensor<4xf32>
      %1 = math.exp %b : tensor<4xf32>
      %2 = math.exp %b : tensor<4xf32>
      %3 = math.exp %b : tensor<4xf32>
      arith.addf %0, %0 : tensor<4xf32>
      arith.addf %1, %2 : tensor<4xf32>
      arith.addf %3, %b : tensor<4xf32>"""
    )

    assert len(operations_of_results(module.operation, ["arith.addf"], ["math.exp"], operands, once=once)) == count


@pytest.mark.parametrize(("through", "count"), [([], 0), (["math.sin"], 1), (["math.sin", "arith.mulf"], 2)])
def test_operations_of_results_of_other_operations(through: list[str], count: int) -> None:
    module = _module(
        """
      %0 = math.exp %a : tensor<4xf32>
      %1 = math.sin %0 : tensor<4xf32>
      %2 = math.sin %1 : tensor<4xf32>
      %3 = arith.mulf %b, %0 : tensor<4xf32>
      %4 = math.sin %0 : tensor<4xf32>
      %5 = math.cos %4 : tensor<4xf32>
      %6 = math.sin %4 : tensor<4xf32>
      arith.addf %2, %b : tensor<4xf32>
      arith.addf %3, %b : tensor<4xf32>
      arith.addf %5, %b : tensor<4xf32>
      arith.addf %6, %b : tensor<4xf32>"""
    )

    found = operations_of_results(module.operation, ["arith.addf"], ["math.exp"], once=True, through=through)

    assert len(found) == count


def _merge(body: str, may_wait: Callable[[str], bool]) -> str:
    module = _module(body)
    kinds = OpKinds(module.operation, "test.sum")

    def pack(ops: list[Any], placeholder: Any) -> None:
        made = ir.Operation.create(
            "test.sums",
            [value.type for value in placeholder.results],
            list(placeholder.operands),
            loc=placeholder.location,
            ip=ir.InsertionPoint(placeholder),
        )
        for old, new in zip(placeholder.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        placeholder.erase()

    with module.context:
        kinds.merge([(0, 1)] * len(kinds.representatives), 100, may_wait, pack)
    assert module.operation.verify()
    return ",".join(one.operation.name for one in module.body.operations[0].regions[0].blocks[0].operations)


def test_merged_operations_wait_with_their_users() -> None:
    body = """
      %0 = "test.sum"(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = math.exp %0 : tensor<4xf32>
      %2 = "test.sum"(%b) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = math.sin %2 : tensor<4xf32>
      "test.use"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> ()"""

    assert _merge(body, lambda name: name.startswith("math.")) == "test.sums,math.exp,math.sin,test.use,func.return"
    assert _merge(body, lambda name: False) == "test.sum,math.exp,test.sum,math.sin,test.use,func.return"


def test_many_kinds_wait_for_each_other() -> None:
    lines = [
        f'%{n} = "test.sum"(%{"a" if n < 70 else n - 70}) {{kind = {n % 70}}} : (tensor<4xf32>) -> tensor<4xf32>'
        for n in range(140)
    ]
    module = _module("\n".join(lines))
    kinds = OpKinds(module.operation, "test.sum")

    with module.context:
        changed = kinds.merge([(number, 1) for number in range(70)], 100, lambda name: True, lambda ops, place: None)

    # Each operation uses the previous one of its kind, and no operation is merged with itself.
    assert not changed
