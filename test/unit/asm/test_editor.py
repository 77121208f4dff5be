# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of native changes of operations, against their state in the bindings."""

from __future__ import annotations

from typing import Any

import pytest

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ir import editing
from mlir_shard.ir.editing import operations_named

PROGRAM = """
func.func @f(%x: tensor<4xf32> {test.mark = 1 : i32}, %y: tensor<2xi8>) -> (tensor<4xf32> {test.mark = 2 : i32}) {
  %0 = stablehlo.negate %x {test.mark = 1 : i32, test.other} : tensor<4xf32>
  %1 = stablehlo.abs %0 {test.mark = 3 : i32} : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @g(tensor<4xf32>)
"""
MARK = "test.mark"


@pytest.fixture
def module() -> Any:
    return asm.parse_module(PROGRAM, create_context())


def functions(module: Any) -> list[ir.Operation]:
    return operations_named(module.operation, "func.func")


def body(module: Any) -> list[ir.Operation]:
    return [op.operation for op in functions(module)[0].regions[0].blocks[0].operations]


def number(module: Any, value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, module.context), value)


def test_operations_of_a_name_and_the_parts_of_one(module) -> None:
    assert editing.children(module, "func.func") == functions(module)
    assert editing.children(module, "stablehlo.negate") == []
    first, second = functions(module)
    assert editing.terminator(first).name == "func.return"
    assert [editing.block_count(one) for one in (first, second)] == [1, 0]
    assert str(editing.function_type(first)) == "(tensor<4xf32>, tensor<2xi8>) -> ()", (
        "a function has no results itself"
    )


def test_columns_of_attributes_have_equal_ones_once(module) -> None:
    marks, others = editing.attribute_columns(body(module), MARK, "test.other")
    assert marks == [number(module, 1), number(module, 3), None]
    assert [other is not None for other in others] == [True, False, False]


def test_attributes_are_replaced_once_for_each_distinct_one(module) -> None:
    asked: list[int] = []

    def replaced(attribute: Any) -> Any:
        asked.append(attribute.value)
        return number(module, 10 * attribute.value)

    assert {one.value for one in editing.distinct_attributes(module, MARK, [])} == {1, 2, 3}
    editing.replace_attributes(module, MARK, [], replaced)
    assert sorted(asked) == [1, 2, 3]
    assert [op.attributes[MARK].value for op in body(module)[:2]] == [10, 30]
    assert {one.value for one in editing.distinct_attributes(module, MARK, [])} == {10, 20, 30}


@pytest.mark.parametrize(
    ("name", "left"), [(MARK, ["test.other"]), ("test.", []), ("other.", ["test.mark", "test.other"])]
)
def test_attributes_are_removed_by_name_or_dialect(module, name: str, left: list[str]) -> None:
    editing.remove_attributes(module, name)
    assert sorted(body(module)[0].attributes) == left
    assert [MARK in op.attributes for op in body(module)[:2]] == [name == "other."] * 2


def test_columns_of_signatures_are_read_and_set(module) -> None:
    function = functions(module)[0]
    numbers, distinct, numbers_of_types, types = editing.signature_column(function, editing.Side.ARGUMENTS, MARK)
    assert ([distinct[one].value if one >= 0 else None for one in numbers]) == [1, None]
    assert [str(types[one]) for one in numbers_of_types] == ["tensor<4xf32>", "tensor<2xi8>"]
    editing.set_signature_column(function, editing.Side.ARGUMENTS, MARK, [None, number(module, 5)])
    numbers, distinct, _, _ = editing.signature_column(function, editing.Side.ARGUMENTS, MARK)
    assert ([distinct[one].value if one >= 0 else None for one in numbers]) == [None, 5]
    numbers, distinct, _, _ = editing.signature_column(function, editing.Side.RESULTS, MARK)
    assert [distinct[one].value for one in numbers] == [2]


def test_another_operation_takes_the_place_of_one(module) -> None:
    negate, absolute, _ = body(module)
    location = str(negate.location)
    new = editing.replace(negate, "stablehlo.cosine", {"test.new": number(module, 4)}, dropped=["test.other"])
    assert new.name == "stablehlo.cosine"
    assert sorted(new.attributes) == ["test.mark", "test.new"]
    assert str(new.location) == location
    assert absolute.operands[0].owner == new
    assert [op.name for op in body(module)] == ["stablehlo.cosine", "stablehlo.abs", "func.return"]
    assert sorted(editing.replace(new, "stablehlo.sine", {}, dropped=None).attributes) == []


def test_links_are_put_behind_values_and_taken_away(module) -> None:
    negate, absolute, _ = body(module)
    marks = [[number(module, 6)], [number(module, 7)]]
    ops = [negate, absolute]
    editing.add_links(ops, editing.Side.RESULTS, "stablehlo.cosine", "test.link", marks, lambda type_: True)
    names = ["stablehlo.negate", "stablehlo.cosine", "stablehlo.abs", "stablehlo.cosine", "func.return"]
    assert [op.name for op in body(module)] == names
    assert module.operation.verify()
    editing.add_links(ops, editing.Side.RESULTS, "stablehlo.cosine", "test.link", marks, lambda type_: True)
    assert [op.name for op in body(module)] == names, "not where one is the only use already"
    numbers, taken, users = editing.take_links(ops, editing.Side.RESULTS, "stablehlo.cosine", "test.link")
    assert [[taken[number] for number in of_op] for of_op in numbers] == marks
    assert [op.name for op in users] == ["stablehlo.abs", "func.return"], "but for other links"
    assert [op.name for op in body(module)] == ["stablehlo.negate", "stablehlo.abs", "func.return"]
    assert editing.take_links(ops, editing.Side.RESULTS, "stablehlo.cosine", "test.link")[0] == [[-1], [-1]]


def test_links_are_only_of_types_that_are_wanted(module) -> None:
    asked: list[str] = []

    def is_wanted(type_: Any) -> bool:
        asked.append(str(type_))
        return False

    editing.add_links(body(module)[:2], editing.Side.RESULTS, "stablehlo.cosine", "test.link", [], is_wanted)
    assert asked == ["tensor<4xf32>"]
    assert len(body(module)) == 3
