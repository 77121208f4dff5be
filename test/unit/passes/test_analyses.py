# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of analyses that passes share, which have to hold for the program that the current pass receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mlir_shard
from mlir_shard import Pass
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import contents, operations_named
from mlir_shard.passes.analyses import analysis, held, held_operations
from mlir_shard.passes.registry import Changes
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.shardings import shardings_in

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  %1 = stablehlo.sine %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


def _pass(body: Callable[[Any], Any], on: str = "builtin.module") -> Pass:
    class Asked(Pass):
        name = "asked"
        anchor = on
        summary = "Asks for analyses"

        def run(self, op: Any) -> Any:
            return body(op)

    return Asked()


def _parsed() -> Any:
    return mlir_shard.parse(PROGRAM, mlir_shard.create_context())


def _shard_tanh(op: Any) -> Any:
    (tanh,) = operations_named(op, "stablehlo.tanh")
    sdy.set_sharding(tanh.results[0], TensorSharding.fully_open(1, "mesh"))
    return tanh


def _drop_sine(op: Any) -> None:
    (sine,) = operations_named(op, "stablehlo.sine")
    sine.results[0].replace_all_uses_with(sine.operands[0])
    sine.erase()


@pytest.mark.parametrize(
    ("returned", "times"),
    [(lambda op: False, 1), (lambda op: True, 2), (lambda op: None, 2), (lambda op: Changes(), 2)],
    ids=["nothing", "something", "unknown", "little"],
)
def test_an_analysis_is_kept_until_something_changes(returned: Callable[[Any], Any], times: int) -> None:
    asked: list[Any] = []

    def ask(op: Any) -> int:
        asked.append(op)
        return len(asked)

    def between(op: Any) -> Any:
        return returned(op)

    answers: list[int] = []

    def read(op: Any) -> bool:
        answers.append(analysis(ask, op))
        return False

    mlir_shard.run(_parsed(), [_pass(read), _pass(between), _pass(read), _pass(read)])
    assert len(asked) == times
    assert answers == [1, times, times]


def test_shardings_are_those_after_the_pass_before() -> None:
    found: list[int] = []

    def count(op: Any) -> bool:
        found.append(len(analysis(shardings_in, op)))
        return False

    def shard(op: Any) -> Changes:
        return Changes(attributed=[_shard_tanh(op)])

    mlir_shard.run(_parsed(), [_pass(count), _pass(shard), _pass(count)])
    assert found == [1, 2]


def test_each_function_has_its_own_analysis() -> None:
    module = _parsed()
    seen: list[Any] = []

    def read(op: Any) -> bool:
        (function,) = operations_named(op, "func.func")
        seen.append((analysis(name_of, op), analysis(name_of, function)))
        return False

    def name_of(op: Any) -> str:
        name: str = op.name
        return name

    mlir_shard.run(module, [_pass(read)])
    assert seen == [("builtin.module", "func.func")]


def test_held_is_never_less_than_the_contents() -> None:
    def check(op: Any) -> bool:
        known, now = held(op), contents(op)
        assert known.operations >= now.operations
        assert known.attributes >= now.attributes
        return False

    def rename(op: Any) -> Changes:
        (tanh,) = operations_named(op, "stablehlo.tanh")
        with tanh.location:
            made = ir.Operation.create(
                "stablehlo.cosine", [one.type for one in tanh.results], list(tanh.operands), ip=ir.InsertionPoint(tanh)
            )
        tanh.results[0].replace_all_uses_with(made.results[0])
        tanh.erase()
        return Changes([made])

    def drop(op: Any) -> bool:
        _drop_sine(op)
        return True

    checked = _pass(check)
    mlir_shard.run(_parsed(), [checked, _pass(rename), checked, _pass(drop), checked])


def test_held_is_without_what_a_pass_says_is_gone() -> None:
    found: list[bool] = []

    def look(op: Any) -> bool:
        found.append("stablehlo.sine" in held(op).operations)
        return False

    def drop(op: Any) -> Changes:
        _drop_sine(op)
        return Changes(without=("stablehlo.sine",))

    mlir_shard.run(_parsed(), [_pass(look), _pass(drop), _pass(look)])
    # Another function may have a sine.
    mlir_shard.run(_parsed(), [_pass(look), _pass(drop, "func.func"), _pass(look)])
    assert found == [True, False, True, True]


def test_an_analysis_holds_that_a_pass_returns() -> None:
    asked: list[Any] = []

    def count(op: Any) -> int:
        asked.append(op)
        return len(operations_named(op, "stablehlo.sine"))

    def read(op: Any) -> bool:
        assert analysis(count, op) == len(operations_named(op, "stablehlo.sine"))
        return False

    def drop(op: Any) -> Changes:
        left = analysis(count, op) - 1
        _drop_sine(op)
        return Changes(analyses={count: left})

    mlir_shard.run(_parsed(), [_pass(drop), _pass(read), _pass(read)])
    assert len(asked) == 1


def test_what_is_known_to_be_absent_is_not_looked_for() -> None:
    found: list[tuple[int, int]] = []

    def look(op: Any) -> bool:
        found.append((len(held_operations(op, "stablehlo.tanh")), len(held_operations(op, "stablehlo.cosine"))))
        return False

    mlir_shard.run(_parsed(), [_pass(look)])
    assert found == [(1, 0)]


def test_a_run_in_a_pass_has_analyses_of_its_own() -> None:
    counted: list[int] = []

    def count(op: Any) -> bool:
        counted.append(len(held_operations(op, "stablehlo.sine")))
        return False

    def nest(op: Any) -> bool:
        count(op)
        other = mlir_shard.parse("func.func @main() { return }", op.context)
        mlir_shard.run(other, [_pass(count)])
        count(op)
        return False

    mlir_shard.run(_parsed(), [_pass(nest)])
    assert counted == [1, 0, 1]


def test_without_a_run_everything_is_read_anew() -> None:
    module = _parsed().operation
    assert len(analysis(shardings_in, module)) == 1
    _shard_tanh(module)
    assert len(analysis(shardings_in, module)) == 2
    assert "stablehlo.sine" in held(module).operations
    _drop_sine(module)
    assert "stablehlo.sine" not in held(module).operations
