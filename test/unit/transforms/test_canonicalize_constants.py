# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `canonicalize` on programs in which only constants move, against the host's pass of that name."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mlir_shard
from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import Changes
from mlir_shard.transforms.canonicalize.canonicalize import Canonicalize


def random_program(choose: random.Random, most: int = 8) -> str:
    """Returns a function with equal and different constants at its start, in its middle and in regions, some unused."""

    def ops(prefix: str, values: list[str], count: int, depth: int = 0) -> list[str]:
        lines = []
        for number in range(count):
            name, kind = f"%{prefix}{number}", choose.random()
            if kind < 0.5:
                dialect = "chlo" if choose.random() < 0.1 else "stablehlo"
                tag = " {tag}" if choose.random() < 0.2 else ""
                lines.append(
                    f'{name} = {dialect}.constant{tag} dense<{choose.randrange(3)}.0> : tensor<f32> loc("{name[1:]}")'
                )
            elif kind < 0.7 and depth < 2:
                inner = ops(f"{prefix}{number}_", list(values), choose.randrange(2, 8), depth + 1)
                lines += [
                    f'{name} = "stablehlo.if"(%p) ({{',
                    *inner,
                    f"stablehlo.return {inner[-1].split()[0]} : tensor<f32>",
                    "}, {",
                    "stablehlo.return %a : tensor<f32>",
                    "}) : (tensor<i1>) -> tensor<f32>",
                ]
            else:
                one, other = choose.choice(values), choose.choice(values)
                lines.append(f"{name} = stablehlo.add {other}, {one} : tensor<f32>")
            values.append(name)
        # The last line defines the result of the region.
        last = f"%{prefix}last"
        return [*lines, f"{last} = stablehlo.subtract {values[-1]}, {choose.choice(values)} : tensor<f32>"]

    body = "\n".join(ops("v", ["%a"], choose.randrange(2, most)))
    return f"func.func @f(%a: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {{\n{body}\nreturn %vlast : tensor<f32>\n}}"


def text_of(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=True))


def by_host(text: str, context: Any) -> str:
    module = mlir_shard.parse(text, context)
    host_passes.run("builtin.module(canonicalize)", module.operation, verify_each=False)
    return text_of(module)


def test_random_programs_become_what_the_host_makes_of_them() -> None:
    context, moved = mlir_shard.create_context(), 0
    for seed in range(120):
        text = random_program(random.Random(seed))
        module = mlir_shard.parse(text, context)
        with context:
            changed = Canonicalize().run(module.operation)
        assert changed is False or isinstance(changed, Changes)
        moved += isinstance(changed, Changes) and len(changed.moved) > 0
        assert text_of(module) == by_host(text, context), text
    assert moved > 100


def test_large_programs_become_what_the_host_makes_of_them() -> None:
    context, text = mlir_shard.create_context(), random_program(random.Random(0), most=20_000)
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(canonicalize)")
    assert text.count(" = ") > 10_000
    assert text_of(module) == by_host(text, context)


@pytest.mark.parametrize(
    "body",
    [
        # Constant operands of commutative operations come last.
        "%0 = chlo.broadcast_add %c, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>",
        # The host folds these.
        '%0 = "chlo.constant_like"(%a) {value = 1.0 : f32} : (tensor<f32>) -> tensor<f32>',
        "%0 = arith.addf %c, %c : tensor<f32>",
    ],
)
def test_the_host_folds_what_it_can(body: str) -> None:
    context = mlir_shard.create_context()
    text = f"""func.func @f(%a: tensor<f32>) -> tensor<f32> {{
      %b = stablehlo.negate %a : tensor<f32>
      %c = stablehlo.constant dense<1.0> : tensor<f32>
      {body}
      %1 = stablehlo.add %0, %b : tensor<f32>
      return %1 : tensor<f32>
    }}"""
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(canonicalize)")
    assert text_of(module) == by_host(text, context)
