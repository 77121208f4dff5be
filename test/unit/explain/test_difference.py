# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the differences between two programs, which ignore names and order.

`cd test && python -m changed_programs --programs 2000` compares more random programs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from changed_programs import variants
from changed_programs.__main__ import Vary, difference, is_edited, is_reannotated, is_unchanged
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_programs.cases import case
from random_programs.generate import DIALECTS

import mlir_shard
from mlir_shard.explain.difference.changes import Difference
from mlir_shard.explain.quantities import Limit

numbers = st.integers(0, 9999)


def found_in(number: int, vary: Vary) -> Difference:
    """Returns the differences between a random program and a variant of it."""
    text = case(0, number, DIALECTS).text()
    after = vary(text, Random(number), mlir_shard.create_context())
    assume(after is not None)
    found = difference(text, after, "shard")
    assume(found is not None)
    assert found is not None
    return found


@settings(max_examples=30)
@given(numbers)
def test_names_and_order_are_no_difference(number: int) -> None:
    found = found_in(number, variants.reordered)
    assert is_unchanged(found), found


@settings(max_examples=30)
@given(numbers)
def test_one_other_annotation_is_found(number: int) -> None:
    found = found_in(number, variants.reannotated)
    assert is_reannotated(found), found


@settings(max_examples=20)
@given(numbers)
def test_one_more_operation_is_found(number: int) -> None:
    found = found_in(number, variants.edited)
    assert is_edited(found), found


def layers(
    count: int, *, sharded: str = '[{}, {"m"}]', edit: Callable[[int], str] = lambda layer: "", batch: int = 8
) -> str:
    """Returns perceptrons of two matrices each. `edit` returns an op that follows a layer."""
    arguments, lines = [f'%x: tensor<{batch}x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"d"}}, {{}}]>}}'], []
    value, of = "%x", f"tensor<{batch}x16xf32>"
    for layer in range(count):
        up, down = f"%up{layer}", f"%down{layer}"
        arguments.append(f"{up}: tensor<16x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharded}>}}")
        arguments.append(f"{down}: tensor<32x16xf32>")
        lines.append(
            f"""
  %h{layer} = stablehlo.dot_general {value}, {up}, contracting_dims = [1] x [0]
    : ({of}, tensor<16x32xf32>) -> tensor<{batch}x32xf32>
  %t{layer} = stablehlo.tanh %h{layer} : tensor<{batch}x32xf32>
  %o{layer} = stablehlo.dot_general %t{layer}, {down}, contracting_dims = [1] x [0]
    : (tensor<{batch}x32xf32>, tensor<32x16xf32>) -> {of}"""
        )
        value = f"%o{layer}"
        if inserted := edit(layer):
            lines.append(f"\n  %e{layer} = stablehlo.{inserted} {value} : {of}")
            value = f"%e{layer}"
    return f"""sdy.mesh @mesh = <["d"=2, "m"=2]>
func.func @main({", ".join(arguments)}) -> {of} {{{"".join(lines)}
  return {value} : {of}
}}"""


def compared(before: str, after: str, **options: str) -> Difference:
    return mlir_shard.diff(mlir_shard.parse(before), mlir_shard.parse(after), **options)


def test_the_same_program_has_no_difference() -> None:
    found = compared(layers(3), layers(3))
    assert not found
    assert str(found) == "no difference"
    assert found.before == found.after
    assert found.before["bytes"] > 0


@pytest.mark.parametrize("collectives", ["shard", "stablehlo"])
def test_another_annotation_changes_shardings_and_bytes(collectives: str) -> None:
    found = compared(layers(2), layers(2, sharded='[{"m"}, {}]'), collectives=collectives)
    (annotation,) = found.annotations
    assert (annotation.count, annotation.before, annotation.after) == (2, '[{}, {"m"}]', '[{"m"}, {}]')
    assert annotation.name == "arg*"
    assert annotation.type == "tensor<16x32xf32>"
    assert found.shardings[0].what == "argument"
    assert found.after["bytes"] > found.before["bytes"]
    assert sum(one.after.count - one.before.count for one in found.collectives) == (
        found.after["collectives"] - found.before["collectives"]
    )
    assert not found.operations


def test_an_annotation_of_a_function_that_only_returns_is_found_where_it_is_called() -> None:
    program = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {{
  %0 = call @first(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}}
func.func private @first(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>
                         {{sdy.sharding = #sdy.sharding<@mesh, {}>}}) -> tensor<4x4xf32> {{
  return %a : tensor<4x4xf32>
}}"""
    found = compared(program.format('[{"x"}, {}]'), program.format('[{}, {"x"}]'))
    (annotation,) = found.annotations
    assert (annotation.what, annotation.name) == ("argument of a call", "arg1")
    assert not found.operations


def test_an_inserted_operation_is_all_that_is_added() -> None:
    found = compared(layers(12), layers(12, edit=lambda layer: "negate" if layer == 5 else ""))
    assert [(one.change, one.op, one.count) for one in found.operations] == [("added", "stablehlo.negate", 1)]
    assert not found.annotations
    assert not found.shardings


def test_an_operation_of_another_name_is_removed_and_added() -> None:
    before = layers(12, edit=lambda layer: "sine" if layer % 2 else "")
    found = compared(before, layers(12, edit=lambda layer: ("cosine" if layer == 5 else "sine") if layer % 2 else ""))
    assert [(one.change, one.op, one.count) for one in found.operations] == [
        ("removed", "stablehlo.sine", 1),
        ("added", "stablehlo.cosine", 1),
    ]
    assert not found.shardings


def test_other_sizes_are_changed_operations_of_the_same_shardings() -> None:
    found = compared(layers(4), layers(4, batch=16))
    assert {one.change for one in found.operations} == {"changed"}
    assert not found.annotations
    assert not found.shardings
    assert found.after["bytes"] == 2 * found.before["bytes"]


def test_a_layer_more_is_added() -> None:
    found = compared(layers(4), layers(5))
    assert {one.change for one in found.operations} == {"added"}
    assert {one.op: one.count for one in found.operations} == {
        "argument": 2,
        "stablehlo.dot_general": 2,
        "stablehlo.tanh": 1,
    }
    assert [(one.before, one.after, one.count) for one in found.annotations] == [(None, '[{}, {"m"}]', 1)]


NAMED = """sdy.mesh @mesh = <["d"=2, "m"=2]>
func.func @main({arguments}) -> tensor<8x8xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  {op}
  return %1 : tensor<8x8xf32>
}}"""
ARGUMENTS = {
    "w": '%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"m"}]>} loc("w")',
    "x": '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>} loc("x")',
}


@pytest.mark.parametrize("op", ["abs", "negate"])
def test_arguments_keep_their_names_where_the_program_is_edited(op: str) -> None:
    forms = [", ".join(ARGUMENTS[name] for name in order) for order in ("wx", "xw")]
    before = NAMED.format(arguments=forms[0], op="%1 = stablehlo.abs %0 : tensor<8x8xf32>")
    found = compared(before, NAMED.format(arguments=forms[1], op=f"%1 = stablehlo.{op} %0 : tensor<8x8xf32>"))
    assert not found.annotations
    assert not found.shardings
    assert bool(found.operations) == (op == "negate")


CALLED = """sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
  %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<8xf32>
  %0 = stablehlo.add %x, %c : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
INLINED = """sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}) -> tensor<8xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<8xf32>
  %0 = stablehlo.add %x, %c : tensor<8xf32>
  %1 = stablehlo.add %0, %c : tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def test_calls_are_what_they_compute() -> None:
    assert not compared(CALLED, INLINED)
    assert not compared(INLINED, CALLED)


def test_a_constant_is_one_of_each_use() -> None:
    twice = INLINED.replace(
        "%1 = stablehlo.add %0, %c", "%d = stablehlo.constant dense<2.0> : tensor<8xf32>\n  %1 = stablehlo.add %0, %d"
    )
    assert not compared(INLINED, twice)
    found = compared(INLINED, twice.replace("%d = stablehlo.constant dense<2.0>", "%d = stablehlo.constant dense<3.0>"))
    assert [(one.change, one.op) for one in found.operations] == [("changed", "stablehlo.constant")]


UPSTREAM = """shard.grid @grid(shape = 2x4)
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %a to %rows : tensor<8x8xf32>
  %1 = arith.negf %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""


def test_annotations_of_upstream_are_compared() -> None:
    assert not compared(UPSTREAM, UPSTREAM.replace("@grid", "@other").replace("%rows", "%r"))
    found = compared(UPSTREAM, UPSTREAM.replace("[[0]]", "[[1]]"))
    (annotation,) = found.annotations
    assert annotation.what == "shard.shard"
    assert found.numbers["shardings"] == 3


def test_a_local_program_is_compared_with_what_a_global_one_becomes() -> None:
    program = mlir_shard.Program(mlir_shard.parse(layers(2)))
    local = program.partition()
    assert not program.diff(local)
    found = mlir_shard.diff(local, mlir_shard.parse(layers(2, sharded='[{"m"}, {}]')))
    assert found.collectives
    assert not found.shardings


def test_a_propagated_program_has_the_shardings_that_it_had() -> None:
    program = mlir_shard.parse(layers(2))
    propagated = program.operation.clone()
    mlir_shard.run(propagated, "builtin.module(shard-propagate)")
    found = mlir_shard.diff(program, propagated)
    assert not found.shardings
    assert not found.collectives


def test_meshes_are_compared_by_what_they_are() -> None:
    assert not compared(layers(1), layers(1).replace("@mesh", "@grid"))
    found = compared(layers(1), layers(1).replace('"m"=2', '"m"=4'))
    assert [len(meshes) for meshes in found.meshes] == [1, 1]
    assert '"m"=2' in found.meshes[0][0]
    assert not found.annotations
    assert not found.shardings


def test_a_program_that_cannot_be_partitioned_is_an_error() -> None:
    wrong = layers(1).replace('[{}, {"m"}]', '[{}, {"m", "d"}]').replace("@mesh, [{}, ", "@absent, [{}, ")
    with pytest.raises((mlir_shard.ParseError, mlir_shard.PassFailure)):
        compared(layers(1), wrong)


def test_thresholds_are_of_growth() -> None:
    found = compared(layers(2), layers(2, sharded='[{"m"}, {}]'))
    grown = found.after["bytes"] - found.before["bytes"]
    share = grown / found.before["bytes"]
    assert found.exceeded({"bytes": Limit("", grown)}) == {}
    assert found.exceeded({"bytes": Limit("", grown - 1)}) == {"bytes": grown}
    assert found.exceeded({"bytes": Limit("", share + 0.01, is_relative=True)}) == {}
    assert set(found.exceeded({"bytes": Limit("", share - 0.01, is_relative=True)})) == {"bytes"}
    assert found.exceeded({"annotations": Limit("", 1)}) == {"annotations": 2}
    back = compared(layers(2, sharded='[{"m"}, {}]'), layers(2))
    assert back
    assert back.exceeded({"bytes": Limit("", 0), "time": Limit("", 0)}) == {}


DYNAMIC = """shard.grid @grid(shape = 2)
func.func @main(%x: tensor<8xf32>, %y: tensor<?xf32>) -> (tensor<8xf32>, tensor<?xf32>) {
  %0 = shard.all_reduce %x on @grid grid_axes = [0] : tensor<8xf32> -> tensor<8xf32>
  %1 = stablehlo.abs %y : tensor<?xf32>
  return %0, %1 : tensor<8xf32>, tensor<?xf32>
}"""


def test_memory_that_is_not_known_has_no_threshold() -> None:
    found = compared(DYNAMIC, DYNAMIC)
    assert not found
    assert set(found.after) == {"bytes", "time", "collectives"}
    with pytest.raises(ValueError, match="the memory of these programs is unknown"):
        found.exceeded({"memory": Limit("", 1.0)})


def test_memory_is_of_the_target() -> None:
    for collectives in ("shard", "stablehlo"):
        found = compared(layers(4), layers(4, batch=32), collectives=collectives)
        local = mlir_shard.Program(mlir_shard.parse(layers(4))).partition(collectives)
        assert found.before["memory"] == local.memory.peak
        assert found.after["memory"] > found.before["memory"]
