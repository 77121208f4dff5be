# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each equivalence class of isomorphic ops is planned once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import mlir_shard
from mlir_shard.ir.editing import operations_named
from mlir_shard.resharding.operator.op_reshards import ShardedOp
from mlir_shard.rules import partition, registry
from mlir_shard.rules.partition import PartitionRule, set_result_types
from mlir_shard.transforms.partition.plan import Planner
from mlir_shard.transforms.reshard import op_choices
from mlir_shard.transforms.reshard.compatible_ops import CompatibleOps

SHARDED = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}'


def planned(monkeypatch: pytest.MonkeyPatch, body: str) -> Counter[str]:
    """Returns the names of the ops that are planned in a function with arguments %a and %b, whose rows are sharded."""
    plan, names = Planner._plan, Counter[str]()

    def counted(self: Planner, op: Any, plans: list[Any]) -> None:
        names[op.name] += 1
        plan(self, op, plans)

    monkeypatch.setattr(Planner, "_plan", counted)
    argument = 'tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: {argument}, %b: {argument}) {{
      {body}
      return
    }}"""
    mlir_shard.run(mlir_shard.parse(text, mlir_shard.create_context()), "builtin.module(spmdize)")
    return names


def rotated(value: str) -> str:
    """Returns ops that swap the two halves of the columns of a value, as in a rotary embedding."""
    halves = "(tensor<8x4xf32>) -> tensor<8x2xf32>"
    return f"""
      {value}0 = stablehlo.slice {value} [0:8, 0:2] {SHARDED} : {halves}
      {value}1 = stablehlo.slice {value} [0:8, 2:4] {SHARDED} : {halves}
      {value}2 = stablehlo.concatenate {value}1, {value}0, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>"""


def test_ops_of_equal_context_keys_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = planned(monkeypatch, rotated("%a") + rotated("%b"))
    assert names["stablehlo.slice"] == 2
    assert names["stablehlo.concatenate"] == 1


UNSHARDED = "\n".join(
    f"""%c{size} = stablehlo.iota dim = 0 : tensor<{size}x4xf32>
      %n{size} = stablehlo.negate %c{size} : tensor<{size}x4xf32>
      %t{size} = stablehlo.transpose %n{size}, dims = [1, 0] : (tensor<{size}x4xf32>) -> tensor<4x{size}xf32>"""
    for size in (4, 8, 6)
)


def test_ops_that_no_sharding_reaches_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    # The sum is sharded, so its replicated operand is sliced.
    names = planned(monkeypatch, f"{UNSHARDED}\n %d = stablehlo.add %a, %n8 {SHARDED} : tensor<8x4xf32>")
    assert names == {"stablehlo.add": 1}


def test_a_users_partition_rule_changes_ops_that_no_sharding_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = partition._by_name | {"stablehlo.negate": PartitionRule(lambda op, blocks: None)}
    monkeypatch.setattr(partition, "_by_name", rules)
    assert planned(monkeypatch, UNSHARDED) == {"stablehlo.negate": 3}


def test_reshards_are_not_searched_for_in_a_program_without_shardings(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], CompatibleOps.make
    monkeypatch.setattr(CompatibleOps, "make", lambda self: made.append(self) or make(self))
    pipeline = "builtin.module(func.func(sdy-insert-explicit-reshards{planner=optimal enable-full-version=true}))"
    for sharding in ("[{}, {}]", '[{"x"}, {}]'):
        text = f"""
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<8x4xf32>)
            -> (tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) {{
          {UNSHARDED}
          return %a : tensor<8x4xf32>
        }}"""
        module = mlir_shard.parse(text, mlir_shard.create_context())
        mlir_shard.run(module, pipeline)
        assert len(made) == ("x" in sharding) == mlir_shard.print_module(module).count("sdy.reshard")


def test_ops_of_different_context_keys_are_planned_individually(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = dict(registry._by_name)
    monkeypatch.setattr(registry, "_by_name", rules)
    concatenate = rules["stablehlo.concatenate"]
    joined = f"""
      %c0 = stablehlo.slice %b [0:8, 0:2] {SHARDED} : (tensor<8x4xf32>) -> tensor<8x2xf32>
      %c1 = stablehlo.negate %c0 {SHARDED} : tensor<8x2xf32>
      %c2 = stablehlo.concatenate %c1, %c1, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>
      %c3 = stablehlo.concatenate %a0, %a0, dim = 1 {SHARDED}
        : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>"""
    assert planned(monkeypatch, rotated("%a") + joined)["stablehlo.concatenate"] == 2
    # The two concatenates differ only in whether their operands are slices.
    rules["stablehlo.concatenate"] = replace(concatenate, computing_context_key=None)
    assert planned(monkeypatch, rotated("%a") + joined)["stablehlo.concatenate"] == 3


def test_elementwise_ops_of_any_name_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elementwise ops and broadcasts of any constant are planned once; reductions are planned once per body."""
    scalars = [f"%k{one} = stablehlo.constant dense<{one}.0> : tensor<f32>" for one in range(2)]
    broadcasts = [
        f"%w{one} = stablehlo.broadcast_in_dim %k{one}, dims = [] {SHARDED} : (tensor<f32>) -> tensor<8x4xf32>"
        for one in range(2)
    ]
    names = ("add", "multiply", "maximum")
    computed = [
        f"%{name} = stablehlo.{name} %a, %w{one % 2} {SHARDED} : tensor<8x4xf32>" for one, name in enumerate(names)
    ]
    reduced = [
        f"%r_{name} = stablehlo.reduce(%a init: %k0) applies stablehlo.{name} across dimensions = [1] "
        ": (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>"
        for name in names
    ]
    counts = planned(monkeypatch, "\n".join([*scalars, *broadcasts, *computed, *reduced]))
    assert sum(counts[f"stablehlo.{name}"] for name in names) == 1
    assert counts["stablehlo.broadcast_in_dim"] == 1
    assert counts["stablehlo.reduce"] == 3


def test_elementwise_ops_with_rules_of_users_are_planned_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = dict(partition._by_name)
    monkeypatch.setattr(partition, "_by_name", rules)
    rules["stablehlo.multiply"] = PartitionRule(lambda op, blocks: set_result_types(op, blocks), pure=True)
    computed = (f"%{name} = stablehlo.{name} %a, %b {SHARDED} : tensor<8x4xf32>" for name in ("add", "multiply"))
    assert planned(monkeypatch, "\n".join(computed)) == Counter(("stablehlo.add", "stablehlo.multiply"))


def test_optimization_barriers_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    barriers = (f"%{one}3 = stablehlo.optimization_barrier {SHARDED} %{one} : tensor<8x4xf32>" for one in "ab")
    assert planned(monkeypatch, "\n".join(barriers))["stablehlo.optimization_barrier"] == 1


def test_reshards_are_decided_once_and_inserted_around_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands and partial results are resharded; each reshard has the location of the resharded value."""
    insertion, decided = CompatibleOps._insertion, []

    def counted(self: CompatibleOps, number: int, *choice: Any) -> Any:
        decided.append(number)
        return insertion(self, number, *choice)

    monkeypatch.setattr(CompatibleOps, "_insertion", counted)
    left, right = (
        f"tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}" for dims in ('{}, {"x"}', "{}, {}")
    )
    dot = "contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}"
    module = mlir_shard.parse(
        f"""
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: {left} loc("a"), %b: {right} loc("b"), %c: {left} loc("c"), %d: {right} loc("d"))
            -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
          %0 = stablehlo.dot_general %a, %b, {dot} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("first")
          %1 = stablehlo.dot_general %c, %d, {dot} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("other")
          return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
        }}""",
        mlir_shard.create_context(),
    )
    mlir_shard.run(module, "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))")
    assert len(decided) == 1
    reshards, reduces = operations_named(module, "sdy.reshard"), operations_named(module, "sdy.all_reduce")
    assert [str(op.location) for op in reshards] == [f'loc("{name}")' for name in "bd"]
    assert [str(op.location) for op in reduces] == ['loc("first")', 'loc("other")']
    assert str(reduces[0].attributes["out_sharding"]) == str(reduces[1].attributes["out_sharding"])
    (returned,) = operations_named(module, "func.return")
    assert [value.owner.name for value in returned.operands] == ["sdy.all_reduce"] * 2
    for dot_general in operations_named(module, "stablehlo.dot_general"):
        assert dot_general.operands[1].owner in reshards
        assert [use.owner.name for use in dot_general.results[0].uses] == ["sdy.all_reduce"]


BINARY = "(tensor<8x8xf32>, tensor<8x8xf32>)"
INSERTION = "builtin.module(func.func(sdy-insert-explicit-reshards))"


def functions_of(body: str, left: str = '[{}, {"x"}]', right: str = "[{}, {}]") -> Any:
    """Returns a module of two functions with this body and arguments %a and %b with these shardings, and of @other."""
    a, b = (f"tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {one}>}}" for one in (left, right))
    functions = [
        f"func.func @{name}(%a: {a}, %b: {b}) -> tensor<8x8xf32> {{ {body} return %0 : tensor<8x8xf32> }}"
        for name in ("first", "second")
    ]
    other = f"func.func private @other{BINARY} -> tensor<8x8xf32>"
    return mlir_shard.parse("\n".join(['sdy.mesh @mesh = <["x"=2]>', other, *functions]), mlir_shard.create_context())


def test_reshards_around_equal_ops_of_functions_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decide, decided = op_choices.reshards_around, []

    def counted(op: ShardedOp, *arguments: Any, **options: Any) -> Any:
        decided.append(op)
        return decide(op, *arguments, **options)

    monkeypatch.setattr(op_choices, "reshards_around", counted)
    module = functions_of(
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
        ": (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
    )
    mlir_shard.run(module, INSERTION.replace("reshards", "reshards{enable-full-version=true}"))
    assert len(decided) == 1
    assert len(operations_named(module, "sdy.reshard")) == len(operations_named(module, "sdy.all_reduce")) == 2


UNREDUCED = '[{}, {}], unreduced={"x"}'


@pytest.mark.parametrize(
    ("body", "shardings", "are_read"),
    [
        ("%0 = stablehlo.add %a, %b : tensor<8x8xf32>", (), False),
        ("%0 = stablehlo.add %a, %b : tensor<8x8xf32>", (UNREDUCED, UNREDUCED), True),
        (f"%0 = func.call @other(%a, %b) : {BINARY} -> tensor<8x8xf32>", (), True),
        (
            f"%1 = stablehlo.concatenate %a, %b, dim = 0 : {BINARY} -> tensor<16x8xf32>\n%0 = stablehlo.slice %1 "
            "[0:8, 0:8] : (tensor<16x8xf32>) -> tensor<8x8xf32>",
            (),
            True,
        ),
    ],
)
def test_functions_with_nothing_to_reshard_are_not_read(
    monkeypatch: pytest.MonkeyPatch, body: str, shardings: tuple[str, ...], are_read: bool
) -> None:
    make, made = CompatibleOps.make, []

    def counted(self: CompatibleOps) -> None:
        made.append(self)
        make(self)

    monkeypatch.setattr(CompatibleOps, "make", counted)
    module = functions_of(body, *shardings)
    mlir_shard.run(module, INSERTION)
    assert len(made) == (2 if are_read else 0)
