# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of lowerings that users register: the values that they may return, and the errors about others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlir_shard
from mlir_shard import interfaces
from mlir_shard.host import ir
from mlir_shard.rules import lowering
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.lowering.registered import lower_registered

TEXT = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "test.twice"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "test.four_times"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores the registrations after each test."""
    monkeypatch.setattr(lowering, "_by_name", {})


def parsed(text: str = TEXT) -> Any:
    return mlir_shard.parse(text, mlir_shard.create_context(allow_unregistered=True), "program.mlir")


def twice(op: Any) -> Any:
    (operand,) = op.operands
    return ir.Operation.create("stablehlo.add", [operand.type], [operand, operand])


def test_lowerings_build_ops_and_text_that_are_lowered_in_turn() -> None:
    interfaces.lowering("test.twice")(twice)

    @interfaces.lowering("test.four_times")
    def four_times(op: Any) -> str:
        type_ = op.operands[0].type
        return f"""
          func.func @main(%a: {type_}) -> {type_} {{
            %0 = call @twice(%a) : ({type_}) -> {type_}
            %1 = call @twice(%0) : ({type_}) -> {type_}
            return %1 : {type_}
          }}
          func.func private @twice(%a: {type_}) -> {type_} {{
            %0 = "test.twice"(%a) : ({type_}) -> {type_}
            return %0 : {type_}
          }}"""

    module = parsed()
    lower_registered(module)
    assert str(module).count("stablehlo.add") == 3
    assert "test." not in str(module)


@pytest.mark.parametrize(
    "made",
    [
        lambda op: twice(op).results[0],
        lambda op: [twice(op).results[0]],
        lambda op: (twice(op).results[0],),
        lambda op: twice(op).opview,
    ],
    ids=["value", "list", "tuple", "op"],
)
def test_lowerings_give_values_or_ops(made: Callable[[Any], Any]) -> None:
    interfaces.lowering("test.twice")(made)
    interfaces.lowering("test.four_times")(made)
    module = parsed()
    lower_registered(module)
    assert str(module).count("stablehlo.add") == 2


def test_a_lowering_of_an_op_without_results_may_give_nothing() -> None:
    interfaces.lowering("test.note")(lambda op: None)
    module = parsed('func.func @main(%a: tensor<4xf32>) {\n "test.note"(%a) : (tensor<4xf32>) -> ()\n return\n}')
    lower_registered(module)
    assert "test." not in str(module)


def test_a_pipeline_lowers_all_ops_of_a_dialect() -> None:
    @mlir_shard.register
    class LowerTest(mlir_shard.Pass):
        """Lowers the ops of the test dialect."""

        name = "lower-test-dialect"
        summary = "Lowers the ops of the test dialect"

        def run(self, op: Any) -> None:
            for one in [one.operation for one in op.regions[0].blocks[0].operations][:-1]:
                with ir.InsertionPoint(one), one.location:
                    made = twice(one)
                one.results[0].replace_all_uses_with(made.results[0])
                one.erase()

    interfaces.lowering("test.*", pipeline="func.func(lower-test-dialect)")
    module = parsed()
    lower_registered(module)
    assert str(module).count("stablehlo.add") == 2


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda op: None, r"has 0 results, but the op has 1"),
        (lambda op: 7, r"returned int, expected values, an op, or the text of a module"),
        (lambda op: "nothing", r"returned text that is not a module"),
        (lambda op: op.results[1], r"the lowering of 'test.twice' .* failed in line \d+: IndexError"),
        (
            lambda op: ir.Operation.create("stablehlo.is_finite", [bits(op)], list(op.operands)),
            r"has result 0 of type tensor<4xi1>, expected tensor<4xf32>",
        ),
        (
            lambda op: ir.Operation.create("test.twice", [op.results[0].type], list(op.operands)),
            r"the lowering of 'test.twice' creates such ops again",
        ),
    ],
)
def test_a_lowering_that_does_not_fit(function: Callable[[Any], Any], message: str) -> None:
    interfaces.lowering("test.twice")(function)
    with pytest.raises(RunError, match=message) as caught:
        lower_registered(parsed())
    position = caught.value.diagnostics[0].position
    assert position is not None
    assert position.file == "program.mlir"


def bits(op: Any) -> Any:
    return ir.RankedTensorType.get(op.results[0].type.shape, ir.IntegerType.get_signless(1))


def test_ops_without_a_lowering_are_named() -> None:
    interfaces.lowering("test.twice")(twice)
    with pytest.raises(RunError) as caught:
        lower_registered(parsed())
    (one,) = caught.value.diagnostics
    assert one.message == (
        "'test.four_times' has no lowering: register one with @mlir_shard.interfaces.lowering(\"test.four_times\")"
    )


def test_a_composite_that_its_own_rule_partitions_needs_a_lowering() -> None:
    module = parsed("""
      func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.composite "my.sort" %a {decomposition = @sort_local} : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
      func.func private @sort_local(tensor<4xf32>) -> tensor<4xf32>
    """)
    with pytest.raises(RunError, match=r"'stablehlo.composite:my.sort' has no lowering"):
        lower_registered(module)
