# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that move elements give the same results in simulation after their halo exchanges are made explicit."""

from __future__ import annotations

import numpy as np
import pytest
from transforms import manual_simulation

from mlir_shard import asm
from mlir_shard import run as run_passes
from mlir_shard.dialects.contexts import create_context
from mlir_shard.transforms.halo.moving_ops import communicates_along

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=3, "z"=4]>'
REORDERED = 'sdy.mesh @mesh = <["x"=2, "y"=3, "z"=4], device_ids=[{}]>'.format(
    ", ".join(map(str, [(5 * device + 7) % 24 for device in range(24)]))
)
AXES = ["", '"x"', '"y"', '"z"', '"x", "y"', '"y", "x"', '"z":(1)2', '"z":(2)2', '"x", "z":(2)2']
RESOLVE = "builtin.module(sdy-resolve-permutation-factors)"
ALONE = "builtin.module(sdy-per-instruction-partitioning)"
# Creating a context takes longer than most programs here.
CONTEXT = create_context()


def sharding_of_rank_2(random: np.random.Generator) -> str:
    while True:
        dims = [AXES[index] for index in random.integers(0, len(AXES), 2)]
        names = {name for name in "xyz" if sum(f'"{name}"' in dim for dim in dims) > 1}
        are_parts_of_z = names == {"z"} and sorted("(1)" in dim for dim in dims) == [False, True]
        has_overlap = bool(names) and not (are_parts_of_z and any("(2)2" in dim for dim in dims))
        if not has_overlap and any(dims):
            return "[{" + dims[0] + "}, {" + dims[1] + "}]"


def pad(random: np.random.Generator, shape: list[int]) -> tuple[str, list[int]]:
    between = random.integers(0, 2, 2).tolist() if random.random() < 0.4 else [0, 0]
    spread = [(size - 1) * (gap + 1) + 1 for size, gap in zip(shape, between, strict=True)]
    low = [int(random.integers(-size // 2 + 1, 2 * size)) for size in spread]
    high = [int(random.integers(-size // 2 + 1, 2 * size)) for size in spread]
    new = [size + before + after for size, before, after in zip(spread, low, high, strict=True)]
    return f"stablehlo.pad %arg0, %c, low = {low}, high = {high}, interior = {between}", new


def cut(random: np.random.Generator, shape: list[int]) -> tuple[str, list[int]]:
    starts = [int(random.integers(0, size)) for size in shape]
    limits = [int(random.integers(start + 1, size + 1)) for start, size in zip(starts, shape, strict=True)]
    bounds = ", ".join(f"{start}:{limit}" for start, limit in zip(starts, limits, strict=True))
    new = [limit - start for start, limit in zip(starts, limits, strict=True)]
    return f"stablehlo.slice %arg0 [{bounds}]", new


def program(random: np.random.Generator, kind: str) -> tuple[str, list[int]]:
    shape = random.integers(1, 14, 2).tolist()
    if kind == "even reverse":
        shape = [24, 24]
    sharding = sharding_of_rank_2(random)
    spelled = "x".join(map(str, shape))
    if "reverse" in kind:
        op, new = f"stablehlo.reverse %arg0, dims = {[[0], [1], [0, 1]][random.integers(3)]}", shape
        type_ = f": tensor<{spelled}xi64>"
    else:
        op, new = (pad if kind == "pad" else cut)(random, shape)
        padding = ", tensor<i64>" if kind == "pad" else ""
        type_ = f": (tensor<{spelled}xi64>{padding}) -> tensor<{'x'.join(map(str, new))}xi64>"
    made = f"tensor<{'x'.join(map(str, new))}xi64>"
    text = f"""
    func.func @main(%arg0: tensor<{spelled}xi64> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) -> {made} {{
      %c = stablehlo.constant dense<{random.integers(0, 3)}> : tensor<i64>
      %0 = {op} {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sharding}>]>}} {type_}
      return %0 : {made}
    }}"""
    return text, shape


def check(text: str, shape: list[int], pipeline: str) -> str:
    module = asm.parse_module(text, CONTEXT)
    value = np.arange(1, np.prod(shape) + 1).reshape(shape)
    function, meshes = manual_simulation.function_and_meshes(module)
    (expected,) = manual_simulation.run(function, [value], meshes)
    run_passes(module, pipeline)
    printed: str = asm.print_operation(module.operation)
    function, meshes = manual_simulation.function_and_meshes(module)
    (found,) = manual_simulation.run(function, [value], meshes)
    np.testing.assert_array_equal(found, expected, err_msg=printed)
    return printed


# Per-instruction partitioning supports a reverse of even shards only.
@pytest.mark.parametrize(
    ("kind", "pipeline"),
    [
        ("pad", RESOLVE),
        ("slice", RESOLVE),
        ("reverse", RESOLVE),
        ("pad", ALONE),
        ("slice", ALONE),
        ("even reverse", ALONE),
    ],
)
def test_random_ops(kind: str, pipeline: str) -> None:
    random = np.random.default_rng(7)
    count = 0
    for _ in range(60):
        mesh = REORDERED if random.random() < 0.3 else MESH
        text, shape = program(random, kind)
        count += "collective_permute" in check(f"{mesh}\n{text}", shape, pipeline)
    assert count > 5


@pytest.mark.parametrize("sizes", [[2, 7], [4, 5], [6, 4], [2, 3], [3, 7], [12, 2], [4, 6], [2, 2, 5], [3, 8]])
@pytest.mark.parametrize("mesh", [MESH, REORDERED])
@pytest.mark.parametrize(
    "axes", [['"z":(1)2', '"z":(2)2'], ['"y"', '"z"'], ['"x"', '"y"'], ['"z"', '"x"'], ["", '"z"']]
)
def test_splits(sizes: list[int], mesh: str, axes: list[str]) -> None:
    size = int(np.prod(sizes))
    before = ", ".join(axis for axis in axes if axis).replace('"z":(1)2, "z":(2)2', '"z"')
    after = ", ".join(f"{{{axis}}}" for axis in [*axes, ""][: len(sizes)])
    new = f"tensor<{'x'.join(map(str, sizes))}xi64>"
    text = f"""{mesh}
    func.func @main(%arg0: tensor<{size}xi64> {{sdy.sharding = #sdy.sharding<@mesh, [{{{before}}}]>}}) -> {new} {{
      %0 = stablehlo.reshape %arg0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{after}]>]>}}
          : (tensor<{size}xi64>) -> {new}
      return %0 : {new}
    }}"""
    check(text, [size], RESOLVE)


@pytest.mark.parametrize(
    ("bounds", "shards", "expected"),
    [
        ("[0:5]", 2, False),  # Shards have three elements, as before.
        ("[0:4]", 2, True),
        ("[1:6]", 2, True),
        ("[0:6:2]", 2, True),
        ("[1:6]", 1, False),
    ],
)
def test_slices_that_need_elements_of_others(bounds: str, shards: int, expected: bool) -> None:
    size = len(range(6)[slice(*map(int, bounds.strip("[]").split(":")))])
    slice_ = f"stablehlo.slice %a {bounds} : (tensor<6xi64>) -> tensor<{size}xi64>"
    module = asm.parse_module(f"func.func @f(%a: tensor<6xi64>) {{\n %0 = {slice_}\n return\n}}", CONTEXT)
    op = module.body.operations[0].operation.regions[0].blocks[0].operations[0].operation
    assert communicates_along(op, 0, shards) is expected


def test_a_matmul_alone_sums_over_uneven_shards() -> None:
    module = asm.parse_module(
        """
    sdy.mesh @mesh = <["x"=2, "y"=3]>
    func.func @main(%arg0: tensor<5x7xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                    %arg1: tensor<7x4xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<5x4xi64> {
      %0 = stablehlo.dot %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
          : (tensor<5x7xi64>, tensor<7x4xi64>) -> tensor<5x4xi64>
      return %0 : tensor<5x4xi64>
    }""",
        CONTEXT,
    )
    inputs = [np.arange(35).reshape(5, 7), np.arange(28).reshape(7, 4)]
    run_passes(module, ALONE)
    assert "stablehlo.all_reduce" in asm.print_operation(module.operation)
    function, meshes = manual_simulation.function_and_meshes(module)
    (found,) = manual_simulation.run(function, inputs, meshes)
    np.testing.assert_array_equal(found, inputs[0] @ inputs[1])
