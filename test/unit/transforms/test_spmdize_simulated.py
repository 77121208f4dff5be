# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Spmdized programs give every device its shard of the global program's results, in a simulation of the devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transforms import device_simulation
from transforms.random_programs import generate

from mlir_shard import asm
from mlir_shard import run as run_passes
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import create_context
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import device_box

# Shards of these sizes are short or empty on the last devices.
UNEVEN_SIZES = (1, 3, 5, 6, 7, 8)
# Creating a context takes longer than most programs here.
CONTEXT = create_context()


def main_of(module: Any) -> Any:
    return next(op.operation for op in module.body.operations if op.operation.name == "func.func")


def check(text: str, mesh: Mesh, seed: int = 0) -> str:
    """Compares `text` as a global program with its local program on each device; returns the local program."""
    module = asm.parse_module(text, CONTEXT)
    run_passes(module, "builtin.module(shard-propagate)")
    function = main_of(module)
    type_ = function.attributes["function_type"].value
    arguments = [sdy.get_sharding(argument) for argument in function.regions[0].blocks[0].arguments]
    results = [sdy.get_result_sharding(function, index) for index in range(len(type_.results))]
    random = np.random.default_rng(seed)
    inputs = [random.integers(-1, 2, list(one.shape)).astype(np.float32) for one in type_.inputs]
    (expected,) = device_simulation.run(module, [inputs])
    assert all(np.isfinite(whole).all() for whole in expected)

    run_passes(module, "builtin.module(shard-spmdize)")
    local = asm.print_operation(module.operation)
    assert "sdy" not in local
    devices = sorted(mesh.devices)
    blocks = [[block(*pair, mesh, device) for pair in zip(inputs, arguments, strict=True)] for device in devices]
    for device, found in zip(devices, device_simulation.run(module, blocks), strict=True):
        for got, whole, sharding in zip(found, expected, results, strict=True):
            own = got if sharding is None else got[device_box(sharding, mesh, whole.shape, device).local_slices]
            np.testing.assert_allclose(own, part(whole, sharding, mesh, device), rtol=1e-4, err_msg=local)
    return local


def part(whole: Any, sharding: TensorSharding | None, mesh: Mesh, device: int) -> Any:
    """Returns the part of a tensor that is on a device, without padding."""
    return whole if sharding is None else whole[device_box(sharding, mesh, whole.shape, device).slices]


def block(whole: Any, sharding: TensorSharding | None, mesh: Mesh, device: int) -> Any:
    """Returns the shard of a tensor on a device; its padding is NaN."""
    if sharding is None:
        return whole
    local = np.full(sharding.local_shape(whole.shape, mesh), np.nan, np.float32)
    local[device_box(sharding, mesh, whole.shape, device).local_slices] = part(whole, sharding, mesh, device)
    return local


@pytest.mark.parametrize("dialect", ["linalg", "stablehlo"])
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(dialect: str, seed: int) -> None:
    text, axes = generate(seed, dialect)
    check(text, Mesh(axes.items()), seed)


@pytest.mark.parametrize("dialect", ["linalg", "stablehlo"])
@pytest.mark.parametrize("seed", range(100, 140))
def test_random_programs_of_uneven_blocks(dialect: str, seed: int) -> None:
    text, axes = generate(seed, dialect, sizes=UNEVEN_SIZES)
    check(text, Mesh(axes.items()), seed)


ADD = """
sdy.mesh @mesh = {mesh}
func.func @main(
    %a: tensor<7x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}},
    %b: tensor<7x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}})
    -> (tensor<7x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>}}) {{
  %0 = arith.addf %a, %b : tensor<7x6xf32>
  return %0 : tensor<7x6xf32>
}}
"""


@pytest.mark.parametrize(
    "device_ids",
    # Reversed, with the other axis as the major one, in a snake, and in arbitrary order.
    [[5, 4, 3, 2, 1, 0], [0, 2, 4, 1, 3, 5], [0, 1, 2, 5, 4, 3], [3, 0, 5, 4, 1, 2]],
    ids=str,
)
def test_permuted_devices(device_ids: list[int]) -> None:
    mesh = Mesh([("x", 2), ("y", 3)], device_ids)
    check(ADD.format(mesh=mesh), mesh)


def test_devices_by_the_other_axis_first_lie_where_they_should() -> None:
    ids = [0, 2, 1, 3, 4, 6, 5, 7]
    mesh = Mesh([("x", 4), ("y", 2)], ids)
    text = ADD.format(mesh=mesh).replace('[{"y"}, {"x"}]', '[{"x"}, {"y"}]')
    assert "all_gather" not in check(text, mesh)


MATMUL = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(
    %a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {a}>}},
    %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {b}>}},
    %c: tensor<8x8xf32>) -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
  %0 = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}
"""


@pytest.mark.parametrize(
    ("a", "b", "result", "collectives"),
    [
        # Sharding the rows of one operand and the columns of the other needs no collective.
        ('[{"x"}, {}]', '[{}, {"y"}]', '[{"x"}, {"y"}]', []),
        # Sharding the contracted dimension gives partial results that are summed.
        ('[{}, {"x", "y"}]', '[{"x", "y"}, {}]', "[{}, {}]", ["all_reduce"]),
        ('[{"x"}, {"y"}]', '[{"y"}, {}]', '[{"x"}, {}]', ["all_reduce"]),
        # If the result and the accumulator are sharded along an axis, the operands are resharded.
        ('[{"x"}, {"y"}]', '[{"y"}, {}]', '[{"x"}, {"y"}]', ["all_gather", "all_to_all"]),
        # An axis cannot shard the rows and the columns of the result: one operand is gathered.
        ('[{"x"}, {}]', '[{}, {"x"}]', '[{"x"}, {}]', ["all_gather"]),
        # A result that has to be replicated is computed in shards nevertheless.
        ('[{"x", "y"}, {}]', "[{}, {}]", "[{}, {}]", ["all_gather"]),
    ],
)
def test_collectives_of_a_matmul(a: str, b: str, result: str, collectives: list[str]) -> None:
    local = check(MATMUL.format(a=a, b=b, result=result), Mesh([("x", 2), ("y", 2)]))
    found = [line.split("= shard.")[1].split()[0] for line in local.splitlines() if "= shard." in line]
    assert [name for name in found if name != "process_multi_index"] == collectives
