# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Planned collectives produce the target sharding in simulation and cost no more than Shardy's."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest
from resharding.every_layout import distinct_values, halves, mesh_of, shardings

from mlir_shard import asm
from mlir_shard import run as run_passes
from mlir_shard.dialects.contexts import create_context
from mlir_shard.resharding.cost.cost_model import CostModel, Objective
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.greedy_plan import collectives_between, greedy_cost
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.simulation import carry_out, exchange, place, without_padding
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    Move,
    ReduceScatter,
    Together,
)
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import sort_and_merge

MODEL = CostModel()


def reshards(
    mesh: Mesh, pairs: Iterable[tuple[TensorSharding, TensorSharding, tuple[int, ...]]], options: str
) -> list[list[Any]]:
    """Returns the ops that a reshard between each pair becomes; a partial source is reduced by an op before it."""
    text = [f"sdy.mesh @mesh = {mesh}"]
    for number, (source, target, shape) in enumerate(pairs):
        type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
        closed = TensorSharding.closed_with((dim.axes for dim in source.dim_shardings), "mesh")
        reduced = ", ".join(map(str, source.unreduced_axes))
        text.append(
            f"func.func @f{number}(%0: {type_} {{sdy.sharding = #sdy.sharding{source}}}) -> {type_} {{\n"
            + (f"  %1 = sdy.all_reduce {{{reduced}}} %0 out_sharding={closed} : {type_}\n" if reduced else "")
            + f"  %2 = sdy.reshard {'%1' if reduced else '%0'} {target} : {type_}\n  return %2 : {type_}\n}}"
        )
    module = asm.parse_module("\n".join(text), create_context())
    run_passes(module, f"builtin.module(func.func(sdy-reshard-to-collectives{{{options}}}))")
    found = []
    for function in (op.operation for op in module.body.operations if op.operation.name == "func.func"):
        block = function.regions[0].blocks[0]
        *ops, returned = (op.operation for op in block.operations)
        assert returned.operands[0] == (ops[-1].results[0] if ops else block.arguments[0])
        found.append([(op.name, {name: _value(op.attributes[name]) for name in op.attributes}) for op in ops])
    return found


def _value(attribute: Any) -> Any:
    return attribute.value if hasattr(attribute, "value") else attribute


def moves_of(name: str, attributes: dict[str, Any], grid: Grid) -> Move:
    """Returns the move of a collective."""
    if name == "sdy.collective_permute":
        return CollectivePermute(grid.placement(attributes["out_sharding"]).dims)
    if name == "sdy.all_reduce":
        return AllReduce(tuple(sorted(grid.axes(attributes["reduction_axes"].value))), ReductionOp.SUM)
    if name == "sdy.all_to_all":
        params = attributes["params"].value
        return Together(tuple(AllToAll(grid.axes(one.axes), one.src_dim, one.tgt_dim) for one in params))
    key = next(key for key in attributes if key.endswith("ing_axes") or key == "reduce_scatter_axes")
    per_dim = [(dim, grid.axes(axes.value)) for dim, axes in enumerate(attributes[key].value) if axes.value]
    if name == "sdy.reduce_scatter":
        return Together(tuple(ReduceScatter(dim, axes, ReductionOp.SUM) for dim, axes in per_dim))
    kind = AllGather if name == "sdy.all_gather" else AllSlice
    return Together(tuple(kind(dim, axes) for dim, axes in per_dim))


def check(source: TensorLayout, target: TensorLayout, ops: list[Any]) -> float:
    """Simulates the collectives and returns their cost, which is infinite if one is a direct exchange."""
    said = [op[1].get("out_sharding") or op[1]["sharding"] for op in ops]
    used = [axis for one in (source.sharding, target.sharding, *said) for axis in one.used_axes]
    grid = Grid.of(source.mesh, used)
    tensor = GridTensor(grid, source.shape, 4)
    before, layout = grid.placement(source.sharding), source
    values = distinct_values(source)
    blocks = place(values, source)
    cost = 0.0
    for name, attributes in ops:
        if name == "sdy.reshard":
            assert "mlir_shard.direct_exchange" in attributes
            arrived = TensorLayout(attributes["sharding"], source.mesh, source.shape)
            blocks, layout = exchange(direct_exchange(layout, arrived), blocks), arrived
            before = grid.placement(layout.sharding)
            cost = np.inf
            continue
        move = moves_of(name, attributes, grid)
        blocks = carry_out(move, blocks, before, tensor)
        cost += MODEL.cost(move, before, tensor).time
        before = tensor.after(move, before)
        layout = TensorLayout(grid.sharding(before, "mesh"), source.mesh, source.shape)
    assert before == grid.placement(target.sharding)
    expected = without_padding(place(values.sum(0, keepdims=True), target), target)
    found = without_padding(blocks, target)
    for device, block in expected.items():
        np.testing.assert_array_equal(found[device], block)
    return cost


@pytest.mark.parametrize("options", ["planner=optimal", "planner=optimal direct-exchange=true objective=bytes"])
@pytest.mark.parametrize(
    ("sizes", "shape"),
    [((2, 2), (8, 8)), ((2, 3), (12, 6)), ((4, 2), (8, 16)), ((2, 2, 2), (16, 8)), ((4, 2), (7, 5)), ((2, 3), (4, 13))],
)
def test_random_reshards(sizes: tuple[int, ...], shape: tuple[int, ...], options: str) -> None:
    mesh = mesh_of(*sizes)
    random = Random(len(options) + sum(shape))
    every = shardings(mesh, halves(mesh), len(shape))
    pairs = [(random.choice(every), random.choice(every), shape) for _ in range(60)]
    is_cheaper = 0
    for (before, after, _), ops in zip(pairs, reshards(mesh, pairs, options), strict=True):
        source, target = TensorLayout(before, mesh, shape), TensorLayout(after, mesh, shape)
        cost = check(source, target, ops)
        try:
            shardys = greedy_cost(source, collectives_between(before, after, shape, mesh), 4, MODEL)
        except ValueError:
            continue
        if "direct-exchange" not in options:
            assert cost <= shardys * (1 + 1e-9)
            is_cheaper += cost < shardys * (1 - 1e-9)
    assert is_cheaper or "direct-exchange" in options or shape not in ((8, 8), (16, 8))


@pytest.mark.parametrize(("sizes", "shape"), [((2, 2), (8, 8)), ((2, 2, 2), (16, 8)), ((4, 2), (7, 5))])
def test_reductions_are_planned_with_the_reshard_behind_them(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    random = Random(3)
    sources = [one for one in shardings(mesh, halves(mesh), 2, unreduced=True) if one.unreduced_axes]
    targets = shardings(mesh, halves(mesh), 2)
    pairs = [(random.choice(sources), random.choice(targets), shape) for _ in range(40)]
    names = set()
    for (before, after, _), ops in zip(pairs, reshards(mesh, pairs, "planner=optimal"), strict=True):
        axes = sort_and_merge(before.unreduced_axes, mesh)
        assert axes == before.unreduced_axes
        check(TensorLayout(before, mesh, shape), TensorLayout(after, mesh, shape), ops)
        names |= {name for name, _ in ops}
    assert "sdy.reduce_scatter" in names


def test_where_shardys_plan_is_as_cheap_it_is_taken() -> None:
    mesh = mesh_of(2, 2)
    every = shardings(mesh, halves(mesh), 2)
    pairs = [(before, after, (8, 8)) for before in every for after in every]
    for (before, after, shape), ops, shardys in zip(
        pairs, reshards(mesh, pairs, "planner=optimal"), reshards(mesh, pairs, ""), strict=True
    ):
        greedy = collectives_between(before, after, shape, mesh)
        source, target = (TensorLayout(one, mesh, shape) for one in (before, after))
        cost, of_greedy = check(source, target, ops), greedy_cost(source, greedy, 4, MODEL)
        assert ops == shardys if cost >= of_greedy * (1 - 1e-9) else cost < of_greedy


def test_the_objective_decides() -> None:
    mesh = mesh_of(2, 2, 2)
    every = shardings(mesh, halves(mesh), 2)
    random = Random(11)
    pairs = [(random.choice(every), random.choice(every), (64, 64)) for _ in range(150)]
    by_time, by_bytes = (
        reshards(mesh, pairs, f"planner=optimal objective={one.value}") for one in list(Objective)[1::-1]
    )
    assert by_time != by_bytes
