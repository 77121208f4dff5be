# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one reshard on meshes of up to six axes are correct on every device and move the bytes of their plan."""

from __future__ import annotations

import random
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sharding.texts import sharding
from transforms import device_simulation

import mlir_shard
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.steps import DirectExchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.tools import shard_run
from mlir_shard.transforms.communication.shard_communication_report import communication_report

PIPELINE = "builtin.module(spmd-pipeline)"
# Plans of the fewest bytes move several dimensions at once where plans of the least time move one after the other.
FEWEST_BYTES = "builtin.module(func.func(sdy-reshard-to-collectives{planner=optimal objective=bytes}),spmdize)"
ELEMENT_SIZE = 4


def random_layout(generator: random.Random, mesh: Mesh, shape: tuple[int, ...]) -> TensorLayout:
    names = list(mesh.axis_names)
    generator.shuffle(names)
    dims: list[list[AxisRef]] = [[] for _ in shape]
    for name in names[: generator.randint(0, len(names))]:
        dims[generator.randrange(len(shape))].append(AxisRef(name))
    return TensorLayout(TensorSharding.closed_with(dims, "mesh"), mesh, shape)


def program(*reshards: tuple[TensorLayout, TensorLayout]) -> str:
    """Returns a function that reshards each of its arguments, on one mesh."""
    types = [f"tensor<{'x'.join(map(str, source.shape))}xf32>" for source, _ in reshards]
    both = list(enumerate(zip(types, reshards, strict=True)))
    axes = ", ".join(f'"{axis.name}"={axis.size}' for axis in reshards[0][0].mesh.axes)
    arguments = (f"%a{i}: {type_} {{sdy.sharding = #sdy.sharding{one.sharding}}}" for i, (type_, (one, _)) in both)
    results = (f"{type_} {{sdy.sharding = #sdy.sharding{one.sharding}}}" for _, (type_, (_, one)) in both)
    body = "\n".join(f"  %{i} = sdy.reshard %a{i} {one.sharding} : {type_}" for i, (type_, (_, one)) in both)
    return f"""
sdy.mesh @mesh = <[{axes}]>
func.func @main({", ".join(arguments)}) -> ({", ".join(results)}) {{
{body}
  return {", ".join(f"%{i}" for i, _ in both)} : {", ".join(types)}
}}"""


def local_programs(sizes: tuple[int, ...], count: int, pipeline: str, *, is_even: bool) -> Any:
    generator = random.Random(f"{sizes} {pipeline}")
    mesh = Mesh((f"a{index}", size) for index, size in enumerate(sizes))
    for _ in range(count):
        rank = generator.randint(2, 4)
        choices = [prod(sizes)] if is_even and rank == 2 else [12, 24] if is_even else [5, 7, 10, 12]
        shape = tuple(generator.choice(choices) for _ in range(rank))
        source, target = (random_layout(generator, mesh, shape) for _ in range(2))
        module = mlir_shard.parse(program((source, target)), mlir_shard.create_context())
        mlir_shard.run(module, pipeline)
        yield source, target, module


def check_values(module: Any, *reshards: tuple[TensorLayout, TensorLayout]) -> None:
    arrays = [np.arange(prod(source.shape), dtype=np.float32).reshape(source.shape) for source, _ in reshards]
    inputs: list[list[Any]] = [[] for _ in reshards[0][0].mesh.devices]
    for array, (source, _) in zip(arrays, reshards, strict=True):
        for of_device, box in zip(inputs, source.device_boxes().values(), strict=True):
            local = np.full(source.local_shape, np.nan, np.float32)
            local[box.local_slices] = array[box.slices]
            of_device.append(local)
    found = device_simulation.run(module, inputs)
    for number, (array, (_, target)) in enumerate(zip(arrays, reshards, strict=True)):
        for results, box in zip(found, target.device_boxes().values(), strict=True):
            np.testing.assert_array_equal(results[number][box.local_slices], array[box.slices])


@pytest.mark.parametrize("pipeline", [PIPELINE, FEWEST_BYTES], ids=["time", "bytes"])
@pytest.mark.parametrize("sizes", [(4, 2, 2), (2, 2, 2, 2, 2), (2, 3, 2, 2)], ids=str)
def test_values_on_every_device(sizes: tuple[int, ...], pipeline: str) -> None:
    for is_even in (True, False):
        for source, target, module in local_programs(sizes, 8, pipeline, is_even=is_even):
            check_values(module, (source, target))


@pytest.mark.parametrize("collectives", ["shard", "stablehlo"])
@pytest.mark.parametrize("sizes", [(8, 8, 4, 8), (4, 4, 2, 8, 2), (2, 2, 2, 2, 2, 2)], ids=str)
def test_bytes_of_the_program_are_those_of_the_plan(sizes: tuple[int, ...], collectives: str) -> None:
    generator = random.Random(str(sizes))
    mesh = Mesh((f"a{index}", size) for index, size in enumerate(sizes))
    planner = Planner()
    for _ in range(10):
        shape = (prod(sizes),) * generator.randint(2, 3)
        source, target = (random_layout(generator, mesh, shape) for _ in range(2))
        module = mlir_shard.parse(program((source, target)), mlir_shard.create_context())
        mlir_shard.run(module, f"builtin.module(shard-spmdize{{collectives={collectives}}})")
        plan = planner.plan(source, target, ELEMENT_SIZE)
        assert communication_report(module).bytes_received == plan.bytes_received, (source, target)


NOT_NESTING = [
    ((50, 130, 101), '[{"a0", "a1", "a3"}, {"a2"}, {}]', '[{}, {}, {"a1", "a2"}]'),
    ((75, 75, 75), '[{"a3"}, {"a2"}, {"a1", "a0"}]', '[{"a2"}, {"a0"}, {}]'),
    ((75, 50), '[{"a1"}, {"a0"}]', '[{"a2"}, {"a1", "a0"}]'),
]


@pytest.mark.usefixtures("evict_plans")
@pytest.mark.parametrize(("shape", "source", "target"), NOT_NESTING)
def test_exchanges_among_other_collectives(
    shape: tuple[int, ...], source: str, target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exchanges work within a plan on both targets; the limit on messages rules out a single exchange as the plan."""
    monkeypatch.setitem(Planner.__init__.__kwdefaults__, "most_messages", 96)
    mesh = Mesh(zip(("a0", "a1", "a2", "a3"), (4, 2, 2, 2), strict=True))
    before, after = (TensorLayout(sharding(text), mesh, shape) for text in (source, target))
    plan = Planner().plan(before, after, ELEMENT_SIZE)
    kinds = [type(step.move) for step in plan.steps]
    assert DirectExchange in kinds[:-1]
    module = mlir_shard.parse(program((before, after)), mlir_shard.create_context())
    mlir_shard.run(module, PIPELINE)
    check_values(module, (before, after))
    assert communication_report(module).bytes_received == plan.bytes_received
    # StableHLO programs take and return even shards only, so the uneven shards are made from replicated tensors.
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    file = tmp_path / "program.mlir"
    file.write_text(f"""
sdy.mesh @mesh = <["a0"=4, "a1"=2, "a2"=2, "a3"=2]>
func.func @main(%a: {type_}) -> {type_} {{
  %0 = sdy.sharding_constraint %a <@mesh, {source}> : {type_}
  %1 = stablehlo.negate %0 : {type_}
  %2 = sdy.sharding_constraint %1 <@mesh, {source}> : {type_}
  %3 = sdy.sharding_constraint %2 <@mesh, {target}> : {type_}
  %4 = stablehlo.negate %3 : {type_}
  %5 = sdy.sharding_constraint %4 <@mesh, {target}> : {type_}
  return %5 : {type_}
}}""")
    assert shard_run.main([str(file), "--collectives=stablehlo", "--engine=pjrt"]) == 0


@pytest.mark.parametrize("sizes", [(6, 2), (3, 6), (6, 4), (10, 4), (2, 6, 3)], ids=str)
def test_the_reshards_of_a_program_have_one_grid(sizes: tuple[int, ...]) -> None:
    """The cheapest plans may split an axis of size 6 at 2 and at 3, for which no grid exists."""
    generator = random.Random(f"{sizes}")
    mesh = Mesh((f"a{index}", size) for index, size in enumerate(sizes))
    for _ in range(6):
        shape = (prod(sizes), 2 * prod(sizes))
        layouts = [random_layout(generator, mesh, shape) for _ in range(12)]
        reshards = list(zip(layouts[::2], layouts[1::2], strict=True))
        module = mlir_shard.parse(program(*reshards), mlir_shard.create_context())
        mlir_shard.run(module, PIPELINE)
        check_values(module, *reshards)
