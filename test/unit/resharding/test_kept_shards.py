# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of other sizes around which nothing is resharded: the native check agrees with the costs in Python."""

from __future__ import annotations

from array import array
from random import Random

import pytest
from resharding.every_layout import mesh_of

import mlir_shard
from mlir_shard._native import ShardedOps
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards
from mlir_shard.resharding.operator.op_form import KeptShards, OpForm
from mlir_shard.resharding.operator.op_problem import ComputeCosts, OpProblem
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.sharding import AxisRef, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.rule import TensorMapping

A, B = AxisRef("a"), AxisRef("b")
MESH = mesh_of(2, 4)
LATENCY = 1e-6


def matmul(rows: int, columns: int, contracted: int) -> OpShardingRule:
    mappings = (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])), (TensorMapping.of([0], [1]),)
    return OpShardingRule((rows, columns, contracted), *mappings, reduction_factors=(2,))


def shapes_of(rule: OpShardingRule) -> list[tuple[int, int]]:
    rows, columns, contracted = rule.factor_sizes
    return [(rows, contracted), (contracted, columns), (rows, columns)]


def form_of(rule: OpShardingRule, rows: Axes, columns: Axes) -> OpForm:
    dims = (rows, ()), ((), columns), (rows, columns)
    return OpForm(rule, tuple(TensorSharding.closed_with(one, "m") for one in dims), MESH, (("m", MESH),))


def asked(rules: list[OpShardingRule], shards: KeptShards, rates: DeviceRates) -> list[int]:
    """Returns the numbers of matmuls, all but the first, for which native code calls `where_resharded`."""
    lines = []
    for number, rule in enumerate(rules):
        left, right, result = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes_of(rule))
        lines += [
            f'%a{number} = "test.tensor"() : () -> {left}',
            f'%b{number} = "test.tensor"() : () -> {right}',
            f"%c{number} = stablehlo.dot %a{number}, %b{number} : ({left}, {right}) -> {result}",
        ]
    text = "func.func @main() {\n" + "\n".join(lines) + "\nreturn\n}"
    module = mlir_shard.parse(text, mlir_shard.create_context(allow_unregistered=True))
    arrays = ModuleArrays(module.body.operations[0])
    names = [op.name for op in arrays.representatives()]
    forms = arrays.forms_of_any_sizes([name == "stablehlo.dot" for name in names])
    matmuls = [op for op in range(len(arrays)) if forms[arrays.signatures[op]] >= 0]
    ops = arrays.sharded_ops(matmuls, {}, forms)
    numbers = array("i", [1] * arrays.value_count)
    ops.keep(
        matmuls[0],
        numbers,
        factors=shards.factors,
        factor_shards=shards.of_factors,
        element_sizes=[4, 4, 4],
        tensor_shards=shards.of_tensors,
        operations_per_element=shards.operations_per_element,
        rates=(rates.operations, rates.memory),
        move_latency=LATENCY,
    )
    found = []

    def where_resharded(op: int) -> list[bool]:
        found.append(matmuls.index(op))
        return []

    uses = [ShardedOps.Use.WEIGHED] * len(ops.representatives)
    ops.settle(matmuls, numbers, uses, [], where_resharded, lambda op: None)
    return found


def test_native_code_keeps_ops_as_their_costs_say() -> None:
    random, counts = Random(7), {True: 0, False: 0}
    for rows, columns in (((A,), (B,)), ((B,), ()), ((), (A,))):
        for memory in (1e9, 1e11, 1e12):
            rates = DeviceRates(operations=10.0 ** random.randrange(9, 14), memory=memory)
            # Larger factors come first: sizes of one form have the same order.
            first = matmul(2048, 1024, 512)
            rules = [first]
            while len(rules) < 20:
                sizes = sorted((random.choice((8, 12, 36, 100, 250, 1000, 3000)) for _ in range(3)), reverse=True)
                rule = matmul(*sizes)
                if len(set(sizes)) == 3 and rule not in rules:
                    rules.append(rule)
            shards = form_of(first, rows, columns).kept_shards(first.factor_sizes, shapes_of(first))
            assert shards is not None
            found = asked(rules, shards, rates)
            for number, rule in enumerate(rules):
                form = form_of(rule, rows, columns)
                problem = OpProblem(form, rule.factor_sizes, tuple(OpTensor(shape, 4) for shape in shapes_of(rule)))
                assert form.kept_axes is not None
                cost = ComputeCosts(problem, rates).cost_if_least(form.kept_axes, 0.0, LATENCY)
                assert (cost is None) == (number in found), (rule, rows, columns, rates)
                counts[cost is None] += 1
    assert min(counts.values()) > 20


def test_shards_that_other_sizes_do_not_keep() -> None:
    rule = matmul(64, 32, 16)
    other = matmul(24, 48, 2)
    shards = KeptShards(((2, 0), (2, 1), (1, 0)), (2, 1, 1), ((2, 1), (1, 1), (2, 1)), 2)
    for one in (rule, other):
        assert form_of(rule, (A,), ()).kept_shards(one.factor_sizes, shapes_of(one)) == shards
    # The contracted dimension is reduced.
    dims = ((), (A,)), ((A,), ()), ((), ())
    reduced = OpForm(rule, tuple(TensorSharding.closed_with(one, "m") for one in dims), MESH, (("m", MESH),))
    assert reduced.kept_shards(rule.factor_sizes, shapes_of(rule)) is None
    # A factor of the rule has another size than its dimensions.
    assert form_of(rule, (A,), ()).kept_shards(rule.factor_sizes, [(64, 8), (8, 32), (64, 32)]) is None


@pytest.mark.parametrize("verified", [False, True])
def test_sizes_of_one_form_are_asked_for_once(verified: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    types = [f"tensor<{2 * size}x{4 * size}xf32>" for size in range(3, 40)]
    given = 'sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>'
    made = 'sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {"b"}]>]>'
    arguments = ", ".join(f"%a{at}: {type_} {{{given}}}" for at, type_ in enumerate(types))
    results = ", ".join(f"{type_} {{{given}}}" for type_ in types)
    body = "\n".join(f"%{at} = stablehlo.add %a{at}, %a{at} {{{made}}} : {type_}" for at, type_ in enumerate(types))
    returned = ", ".join(f"%{at}" for at in range(len(types)))
    text = f"""sdy.mesh @m = <["a"=2, "b"=4]>
      func.func @main({arguments}) -> ({results}) {{
        {body}
        return {returned} : {", ".join(types)}
      }}"""
    around, calls = CheapestReshards.around, []
    monkeypatch.setattr(CheapestReshards, "around", lambda self, *args: calls.append(args) or around(self, *args))

    module = mlir_shard.parse(text, mlir_shard.create_context())
    options = f"enable-full-version=true planner=optimal verify-repetition={str(verified).lower()}"
    mlir_shard.run(module, f"builtin.module(func.func(sdy-insert-explicit-reshards{{{options}}}))")

    assert len(calls) <= (2 * len(types) + 4 if verified else 4)
    assert len(calls) > (len(types) if verified else 0)
