# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work for an op does not grow with the square of the number of its results or arguments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import mlir_shard
from mlir_shard import asm
from mlir_shard.dialects.data_flow import shardable_value
from mlir_shard.dialects.data_flow_edges import Boundary
from mlir_shard.ir.editing import operations_named
from mlir_shard.sharding import TensorShardingPerValue
from mlir_shard.transforms.communication import shard_hoist_collectives
from mlir_shard.transforms.reshard.result_shardings import RestingShardings

MANY = 40
TYPE = "tensor<8x6xf32>"
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'


def types(count: int) -> str:
    return ", ".join([TYPE] * count)


def values(name: str, separator: str = "") -> str:
    return ", ".join(f"%{name}{separator}{number}" for number in range(MANY))


def program(body: str, *sharded: str) -> str:
    """Returns a function of many arguments, of which the first ones are sharded, that returns as many results %s."""
    attributes = [f" {{sdy.sharding = #sdy.sharding<@mesh, {one}>}}" for one in sharded]
    arguments = ", ".join(
        f"%p{number}: {TYPE}{of}" for number, of in enumerate([*attributes, *[""] * (MANY - len(attributes))])
    )
    return f"""{MESH}func.func @main({arguments}) -> ({types(MANY)}) {{
      {body}
      return {values("s", "#")} : {types(MANY)}
    }}"""


def sort(*sharded: str) -> str:
    """Returns a function that sorts many operands along a dimension."""
    scalars = ", ".join(f"%l{number}: tensor<f32>, %r{number}: tensor<f32>" for number in range(MANY))
    return program(
        f"""%s:{MANY} = "stablehlo.sort"({values("p")}) <{{dimension = 1 : i64}}> ({{
      ^bb0({scalars}):
        %c = stablehlo.compare LT, %l0, %r0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }}) : ({types(MANY)}) -> ({types(MANY)})""",
        *sharded,
    )


def computation() -> str:
    """Returns a function with a named computation of many operands, which are used by sharded ops in its body."""
    inner = ", ".join(f"%i{number}: {TYPE}" for number in range(MANY))
    sharded = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}'
    body = "\n".join(f"        %t{number} = stablehlo.tanh %i{number} {sharded} : {TYPE}" for number in range(MANY))
    return program(
        f"""%s:{MANY} = sdy.named_computation<"c">({values("p")}) ({inner}) {{
        {body}
        sdy.return {values("t")} : {types(MANY)}
      }} : ({types(MANY)}) -> ({types(MANY)})"""
    )


def branches() -> str:
    """Returns a function with a conditional of many results."""
    body = "\n".join(f"        %t{number} = stablehlo.tanh %p{number} : {TYPE}" for number in range(MANY))
    return program(
        f"""%b = stablehlo.constant dense<true> : tensor<i1>
        %s:{MANY} = "stablehlo.if"(%b) ({{
        {body}
        stablehlo.return {values("t")} : {types(MANY)}
      }}, {{
        stablehlo.return {values("p")} : {types(MANY)}
      }}) : (tensor<i1>) -> ({types(MANY)})""",
        '[{"x"}, {}]',
    )


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """The numbers of values for whose shardings an attribute was made."""
    print_value, counts = asm.print_value, Counter[int]()

    def counted(value: Any) -> str:
        counts[len(value) if isinstance(value, TensorShardingPerValue) else 1] += 1
        return print_value(value)

    monkeypatch.setattr(asm, "print_value", counted)
    return counts


@pytest.mark.parametrize(
    ("text", "name", "attributes"),
    [
        (sort('[{"x"}, {}]', '[{"x"}, {}]'), "stablehlo.sort", ["sdy.sharding"]),
        (computation(), "sdy.named_computation", ["in_shardings"]),
    ],
    ids=["sort", "computation"],
)
def test_propagated_shardings_are_attached_at_once(
    text: str, name: str, attributes: list[str], printed: Counter[int]
) -> None:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    printed.clear()
    mlir_shard.run(module, "builtin.module(sdy-basic-propagate)")
    (op,) = operations_named(module.operation, name)
    assert all(len(op.attributes[one].value) == MANY for one in attributes)
    assert printed[MANY] <= len(attributes)


@pytest.mark.parametrize("count", [MANY, MANY // 2])
def test_results_that_are_alike_are_settled_together(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = sort(*['[{"x"}, {"y"}]'] * count)
    module = mlir_shard.parse(text, mlir_shard.create_context())
    priced, cost = [], RestingShardings._cost_of_making
    monkeypatch.setattr(RestingShardings, "_cost_of_making", lambda self, op: priced.append(op) or cost(self, op))
    insert = "func.func(sdy-insert-explicit-reshards{planner=optimal enable-full-version=true})"
    mlir_shard.run(module, f"builtin.module(sdy-propagation-pipeline,{insert})")
    assert 0 < len(priced) < 10


def loop() -> str:
    """Returns a function with a loop that carries many values, and reduces each of them in the loop."""
    carried = ", ".join(f"%i{number} = %p{number}" for number in range(MANY))
    reduced = "\n".join(f"        %t{n} = shard.all_reduce %i{n} on @grid : {TYPE} -> {TYPE}" for n in range(MANY))
    arguments = ", ".join(f"%p{number}: {TYPE}" for number in range(MANY))
    return f"""shard.grid @grid(shape = 2)
    func.func @main({arguments}, %n: index) -> ({types(MANY)}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %s:{MANY} = scf.for %k = %c0 to %n step %c1 iter_args({carried}) -> ({types(MANY)}) {{
        {reduced}
        scf.yield {values("t")} : {types(MANY)}
      }}
      return {values("s", "#")} : {types(MANY)}
    }}"""


def test_the_values_of_a_loop_are_read_once_for_its_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mlir_shard.parse(loop(), mlir_shard.create_context())
    read, carried = [], shard_hoist_collectives._carried
    monkeypatch.setattr(shard_hoist_collectives, "_carried", lambda op: read.append(op) or carried(op))
    mlir_shard.run(module, "builtin.module(shard-hoist-collectives)")
    assert len(read) == 1


def test_the_edges_of_results_are_not_listed_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mlir_shard.parse(branches(), mlir_shard.create_context())
    (op,) = operations_named(module.operation, "stablehlo.if")
    listed, of = [], Boundary.of
    monkeypatch.setattr(Boundary, "of", lambda op: listed.append(op) or of(op))
    assert [shardable_value(result) for result in op.results] == list(op.results)
    assert not listed
