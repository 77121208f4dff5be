# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cse` beside the host's pass of that name, which it does not run where nothing can change."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mlir_shard
from mlir_shard.passes import host_passes
from mlir_shard.transforms.canonicalize.cse import CSE

NAMES = ("add", "subtract", "maximum")


def random_program(choose: random.Random) -> str:
    """Two functions of few distinct sums, differences and maxima, some of them in regions, some unused."""

    def ops(count: int, prefix: str, values: list[str], indent: str) -> list[str]:
        lines = []
        for number in range(count):
            name = f"%{prefix}{number}"
            if indent == "  " and choose.random() < 0.2:
                inner = ops(2, f"{prefix}{number}_", list(values), "    ")
                lines += [
                    f'  {name} = "stablehlo.case"(%i) ({{',
                    *inner,
                    f"    stablehlo.return {inner[-1].split()[0]} : tensor<4xf32>",
                    "  }) : (tensor<i32>) -> tensor<4xf32>",
                ]
            else:
                # Of the newest values few are equal.
                one, other = (choose.choice(values[-choose.choice((2, 8)) :]) for _ in range(2))
                lines.append(f"{indent}{name} = stablehlo.{choose.choice(NAMES)} {one}, {other} : tensor<4xf32>")
            values.append(name)
        return lines

    functions = []
    for function in range(2):
        values = ["%a", "%b"]
        body = ops(choose.randrange(1, 7), "v", values, "  ")
        returned = values[2:] if choose.random() < 0.7 else values[-1:]
        types = ", ".join(["tensor<4xf32>"] * len(returned))
        functions.append(
            f"func.func @f{function}(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>) -> ({types}) {{\n"
            + "\n".join(body)
            + f"\n  return {', '.join(returned)} : {types}\n}}"
        )
    return "\n".join(functions)


def by_host(text: str, context: Any) -> str:
    module = mlir_shard.parse(text, context)
    host_passes.run("builtin.module(cse)", module.operation, verify_each=False)
    return mlir_shard.print_module(module)


def test_random_programs_become_what_the_host_makes_of_them() -> None:
    context, left = mlir_shard.create_context(), 0
    for seed in range(150):
        text = random_program(random.Random(seed))
        module = mlir_shard.parse(text, context)
        before = mlir_shard.print_module(module)
        with context:
            is_left = CSE().run(module.operation) is False
        after = mlir_shard.print_module(module)
        assert after == by_host(text, context), text
        assert not is_left or after == before
        left += is_left
    assert 15 < left < 135


@pytest.mark.parametrize(
    "body",
    [
        "%0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<4xf32>",
        "%0 = sdy.constant dense<1.0> : tensor<4xf32>",
        "sdy.sharding_group %a group_id=0 : tensor<4xf32>",
        "%0 = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>",
        "%0 = stablehlo.custom_call @g(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>",
        "%0 = stablehlo.custom_call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>",
    ],
)
def test_what_is_unused_goes_where_the_host_erases_it(body: str) -> None:
    context = mlir_shard.create_context()
    text = (
        f"func.func private @g(tensor<4xf32>) -> tensor<4xf32>\nfunc.func @f(%a: tensor<4xf32>) {{\n{body}\nreturn\n}}"
    )
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    assert mlir_shard.print_module(module) == by_host(text, context)


def test_grids_and_meshes_stay() -> None:
    context = mlir_shard.create_context()
    text = 'shard.grid @grid(shape = 2)\nsdy.mesh @mesh = <["x"=2]>\nfunc.func @f() {\nreturn\n}'
    module = mlir_shard.parse(text, context)
    with context:
        assert CSE().run(module.operation) is False
    assert mlir_shard.print_module(module) == by_host(text, context)
