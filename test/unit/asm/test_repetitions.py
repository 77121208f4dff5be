# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of which operations are isomorphic, and of the replay of the rewrite of the first on the others."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Mapping

import pytest

from mlir_shard import asm
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below

UNKNOWN = -1
KNOWN = 7


class Repeated:
    """The operations in the function of a module, some of which a visit plans.

    Isomorphic operations may differ in names that are `interchangeable`. Operations with these names or the names in
    `ignoring_constants` may differ in the constants that they use. Operations with names in `ignoring_sizes` share the
    plan of one of other sizes, and the first dimension of known values is in two shards.
    """

    def __init__(
        self,
        body: str,
        arguments: str = "%a: tensor<4xf32>, %b: tensor<4xf32>",
        interchangeable: Collection[str] = (),
        ignoring_constants: Collection[str] = (),
        ignoring_sizes: Collection[str] = (),
    ) -> None:
        text = f"func.func @f({arguments}) {{\n{body}\nreturn\n}}"
        self.module = asm.parse_module(text, create_context())
        self.arrays = ModuleArrays(self.module)
        names = [op.name.removeprefix("stablehlo.") for op in self.arrays.representatives()]
        of_constants = (*interchangeable, *ignoring_constants)
        ignored = [(name in interchangeable, name in of_constants, name in ignoring_sizes) for name in names]
        self.rewrites = self.arrays.repeated_rewrites(ignored)
        self.states = array("i", [UNKNOWN]) * self.arrays.value_count
        self.block = self.module.body.operations[0].operation.regions[0].blocks[0]
        self.ops = [op.operation for op in self.block.operations]

    def lie(self, value: ir.Value, state: int) -> None:
        self.states[self.arrays.number_of(value)] = state

    def visit(self, context: int = 0, context_keys: Mapping[int, int] | None = None) -> list[int]:
        """Returns the places in the block of the planned operations; `context_keys` are by place, too."""
        planned = []

        def plan(op: int) -> tuple[list[int], bool]:
            planned.append(self._place(op))
            return [KNOWN] * len(self.arrays.results(op)), True

        def context_key(op: int) -> int | None:
            return (context_keys or {}).get(self._place(op))

        self.rewrites.visit(self.ops[0]._CAPIPtr, context, self.states, plan, context_key, lambda state: [2])
        return planned

    def _place(self, number: int) -> int:
        return self.ops.index(self.arrays.operation(number))

    def rewrite(self, place: int, change: Callable[[ir.Operation], None]) -> list[int]:
        op = self.ops[place]
        return [self._place(number) for number in self.rewrites.rewrite(op._CAPIPtr, lambda: change(op))]

    def names(self) -> list[str]:
        return [op.name for op in ops_below(self.module.body.operations[0])]


def test_the_first_of_isomorphic_operations_is_planned_for_all() -> None:
    repeated = Repeated(
        """%0 = stablehlo.add %a, %b : tensor<4xf32>
        %1 = stablehlo.negate %0 : tensor<4xf32>
        %2 = stablehlo.add %a, %b : tensor<4xf32>
        %3 = stablehlo.negate %2 : tensor<4xf32>"""
    )
    assert repeated.visit() == [0, 1]
    results = [result for op in repeated.ops[:-1] for result in op.results]
    assert [repeated.states[repeated.arrays.number_of(result)] for result in results] == [KNOWN] * 4


def test_isomorphic_operations_have_equal_context_keys() -> None:
    repeated = Repeated("\n".join(f"%{number} = stablehlo.negate %a : tensor<4xf32>" for number in range(4)))
    assert repeated.visit(context_keys={0: 1, 1: 2, 2: 1, 3: 2}) == [0, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("stablehlo.add %a, %b", "stablehlo.multiply %a, %b", id="name"),
        pytest.param("stablehlo.add %a, %b", "stablehlo.add %a, %b {x}", id="attributes"),
        pytest.param("stablehlo.add %a, %b", "stablehlo.add %a, %a", id="one value twice"),
        pytest.param("stablehlo.add %a, %b", "stablehlo.add %a, %k", id="a constant"),
        pytest.param("stablehlo.add %a, %k", "stablehlo.add %a, %l", id="other constants"),
        pytest.param("stablehlo.add %a, %k", "stablehlo.add %a, %n", id="what is made of a constant"),
    ],
)
def test_what_differs_is_not_isomorphic(first: str, second: str) -> None:
    constants = """%k = stablehlo.constant dense<1.0> : tensor<4xf32>
        %l = stablehlo.constant dense<2.0> : tensor<4xf32>
        %n = stablehlo.negate %k : tensor<4xf32>"""
    repeated = Repeated(f"{constants}\n%0 = {first} : tensor<4xf32>\n%1 = {second} : tensor<4xf32>")
    assert repeated.visit() == [0, 1, 2, 3, 4]


def test_isomorphic_constants_are_the_same() -> None:
    repeated = Repeated(
        """%k = stablehlo.constant dense<1.0> : tensor<4xf32>
        %l = stablehlo.constant dense<1.0> : tensor<4xf32>
        %m = stablehlo.negate %k : tensor<4xf32>
        %n = stablehlo.negate %l : tensor<4xf32>
        %0 = stablehlo.add %a, %m : tensor<4xf32>
        %1 = stablehlo.add %a, %n : tensor<4xf32>"""
    )
    assert repeated.visit() == [0, 2, 4]


def test_names_that_are_interchangeable_are_isomorphic() -> None:
    body = """%k = stablehlo.constant dense<1.0> : tensor<4xf32>
        %0 = stablehlo.add %a, %b : tensor<4xf32>
        %1 = stablehlo.multiply %b, %a : tensor<4xf32>
        %2 = stablehlo.multiply %a, %a : tensor<4xf32>
        %3 = stablehlo.add %a, %k : tensor<4xf32>
        %4 = stablehlo.multiply %a, %b {x} : tensor<4xf32>
        %5 = stablehlo.subtract %a, %b : tensor<4xf32>
        %6 = stablehlo.negate %a : tensor<4xf32>
        %7 = stablehlo.tanh %a : tensor<4xf32>"""
    names = ("add", "multiply", "negate", "tanh")
    repeated = Repeated(body, interchangeable=names)
    for argument in repeated.block.arguments:
        repeated.lie(argument, KNOWN)
    assert repeated.visit() == [0, 1, 3, 5, 6, 7]


def test_what_is_made_of_constants_by_another_name_is_another_constant() -> None:
    body = """%k = stablehlo.constant dense<1.0> : tensor<4xf32>
        %0 = stablehlo.negate %k : tensor<4xf32>
        %1 = stablehlo.tanh %k : tensor<4xf32>
        %2 = stablehlo.subtract %a, %0 : tensor<4xf32>
        %3 = stablehlo.subtract %a, %1 : tensor<4xf32>"""
    assert Repeated(body, interchangeable=("negate", "tanh")).visit() == [0, 1, 3, 4]


def test_names_inside_regions_count() -> None:
    arguments = "%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>"
    body = f"{LOOP.format(0, 'a', 'add')}\n{LOOP.format(1, 'a', 'multiply')}"
    assert Repeated(body, arguments, interchangeable=("add", "multiply")).visit() == [0, 1]


def test_constants_may_not_count() -> None:
    body = """%k = stablehlo.constant dense<1.0> : tensor<4xf32>
        %l = stablehlo.constant dense<2.0> : tensor<4xf32>
        %0 = stablehlo.negate %k : tensor<4xf32>
        %1 = stablehlo.negate %l : tensor<4xf32>
        %2 = stablehlo.tanh %a : tensor<4xf32>
        %3 = stablehlo.negate %a : tensor<4xf32>"""
    repeated = Repeated(body, ignoring_constants=("negate",))
    repeated.lie(repeated.block.arguments[0], KNOWN)
    assert repeated.visit() == [0, 1, 2, 4]


def test_states_and_contexts_tell_apart() -> None:
    repeated = Repeated("%0 = stablehlo.negate %a : tensor<4xf32>\n%1 = stablehlo.negate %b : tensor<4xf32>")
    repeated.lie(repeated.block.arguments[1], 3)
    assert repeated.visit() == [0, 1]
    alike = Repeated("%0 = stablehlo.negate %a : tensor<4xf32>\n%1 = stablehlo.negate %b : tensor<4xf32>")
    alike.lie(alike.ops[1].results[0], 5)
    assert alike.visit() == [0, 1], "the states of results as they are before count, too"
    assert alike.visit(context=1) == [0]


def test_operations_of_other_sizes_share_a_plan_for_even_shards() -> None:
    arguments = "%a: tensor<4xf32>, %b: tensor<6xf32>, %c: tensor<5xf32>, %d: tensor<1xf32>, %e: tensor<8xf32>"
    body = """%0 = stablehlo.negate %a : tensor<4xf32>
        %1 = stablehlo.negate %b : tensor<6xf32>
        %2 = stablehlo.negate %c : tensor<5xf32>
        %3 = stablehlo.negate %d : tensor<1xf32>
        %4 = stablehlo.negate %e : tensor<8xf32>
        %5 = stablehlo.tanh %a : tensor<4xf32>
        %6 = stablehlo.tanh %b : tensor<6xf32>
        %7 = stablehlo.negate %b : tensor<6xf32>"""
    repeated = Repeated(body, arguments, ignoring_sizes=("negate",))
    for argument in repeated.block.arguments:
        repeated.lie(argument, KNOWN)
    assert repeated.visit() == [0, 2, 3, 5, 6]
    repeated.rewrites.localize(repeated.states)
    sizes = [op.results[0].type.shape for op in repeated.ops[:-1]]
    assert sizes == [[4], [3], [5], [1], [4], [4], [6], [3]]
    assert {repeated.states[repeated.arrays.number_of(op.results[0])] for op in repeated.ops[:-1]} == {KNOWN}


def test_operations_of_other_sizes_have_equal_states_and_attributes() -> None:
    arguments = "%a: tensor<4xf32>, %b: tensor<6xf32>, %c: tensor<8xf32>"
    body = """%0 = stablehlo.negate %a : tensor<4xf32>
        %1 = stablehlo.negate %b : tensor<6xf32>
        %2 = stablehlo.negate %c {x} : tensor<8xf32>"""
    repeated = Repeated(body, arguments, ignoring_sizes=("negate",))
    repeated.lie(repeated.block.arguments[1], KNOWN)
    assert repeated.visit() == [0, 1, 2]


LOOP = """%{0} = "stablehlo.case"(%i) ({{
    %x = stablehlo.{2} %{1}, %{1} : tensor<4xf32>
    stablehlo.return %x : tensor<4xf32>
  }}) : (tensor<i32>) -> tensor<4xf32>"""


@pytest.mark.parametrize(
    ("second", "planned"),
    [
        pytest.param(LOOP.format(1, "a", "add"), [0], id="equal"),
        pytest.param(LOOP.format(1, "b", "add"), [0, 1], id="another value from around"),
        pytest.param(LOOP.format(1, "a", "multiply"), [0, 1], id="another operation inside"),
    ],
)
def test_regions_count_with_what_they_take_from_around(second: str, planned: list[int]) -> None:
    arguments = "%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>"
    assert Repeated(f"{LOOP.format(0, 'a', 'add')}\n{second}", arguments).visit() == planned


def test_one_without_states_represents_no_other() -> None:
    repeated = Repeated("%0 = stablehlo.negate %a : tensor<4xf32>\n%1 = stablehlo.negate %b : tensor<4xf32>")
    planned: list[int] = []
    repeated.rewrites.visit(
        repeated.ops[0]._CAPIPtr, 0, repeated.states, planned.append, lambda op: None, lambda state: []
    )
    assert len(planned) == 2
    changed: list[ir.Operation] = []
    assert repeated.rewrite(0, changed.append) == []
    assert changed == [repeated.ops[0]]


def test_the_rewrite_of_the_first_is_replayed_on_the_others() -> None:
    repeated = Repeated(
        """%0 = stablehlo.negate %a : tensor<4xf32>
        %1 = stablehlo.negate %b : tensor<4xf32>
        %2 = stablehlo.add %0, %1 : tensor<4xf32>"""
    )
    repeated.visit()

    def change(op: ir.Operation) -> None:
        with ir.InsertionPoint.after(op), op.location:
            twice = ir.Operation.create("stablehlo.abs", [op.results[0].type], [op.results[0]]).results[0]
        op.results[0].replace_all_uses_except(twice, twice.owner.operation)
        op.attributes["seen"] = ir.UnitAttr.get(op.context)

    assert repeated.rewrite(0, change) == []
    assert repeated.names() == [
        "stablehlo.negate",
        "stablehlo.abs",
        "stablehlo.negate",
        "stablehlo.abs",
        "stablehlo.add",
        "func.return",
    ]
    assert str(repeated.module).count("seen") == 2
    used = [value.owner.operation.name for value in repeated.ops[2].operands]
    assert used == ["stablehlo.abs", "stablehlo.abs"]


def test_the_rewrite_is_replayed_on_operations_of_other_names() -> None:
    repeated = Repeated(
        """%0 = stablehlo.negate %a : tensor<4xf32>
        %1 = stablehlo.tanh %b {y} : tensor<4xf32>
        %2 = stablehlo.tanh %b : tensor<4xf32>
        %3 = stablehlo.add %0, %2 : tensor<4xf32>""",
        interchangeable=("negate", "tanh"),
    )
    assert repeated.visit() == [0, 1, 3]

    def change(op: ir.Operation) -> None:
        type_ = op.results[0].type
        with ir.InsertionPoint(op), op.location:
            before = ir.Operation.create("stablehlo.floor", [type_], [op.operands[0]])
        op.operands[0] = before.results[0]
        with ir.InsertionPoint.after(op), op.location:
            twice = ir.Operation.create("stablehlo.abs", [type_], [op.results[0]]).results[0]
        op.results[0].replace_all_uses_except(twice, twice.owner.operation)
        op.attributes["seen"] = ir.UnitAttr.get(op.context)

    assert repeated.rewrite(0, change) == []
    names = ["floor", "negate", "abs", "tanh", "floor", "tanh", "abs", "add"]
    assert repeated.names() == [*(f"stablehlo.{name}" for name in names), "func.return"]
    assert repeated.module.operation.verify()
    changed = [op.name for op in ops_below(repeated.module.body.operations[0]) if "seen" in op.attributes]
    assert changed == ["stablehlo.negate", "stablehlo.tanh"]


def test_an_operation_that_was_not_read_and_states_of_another_size_are_refused() -> None:
    repeated, other = (Repeated("%0 = stablehlo.negate %a : tensor<4xf32>") for _ in range(2))

    def visit(op: ir.Operation, states: array[int]) -> None:
        repeated.rewrites.visit(op._CAPIPtr, 0, states, lambda op: None, lambda op: None, lambda state: [])

    with pytest.raises(ValueError, match="was not there when the module was read"):
        visit(other.ops[0], repeated.states)
    with pytest.raises(ValueError, match="a number for each value"):
        visit(repeated.ops[0], array("i", [0]))
