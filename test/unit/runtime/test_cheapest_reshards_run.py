# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with conflicting shardings have the same results when they are resharded at the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from runtime.local_program import needs_mpich

import mlir_shard
from mlir_shard.runtime import execute
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.compile import Pipelines

pytestmark = needs_mpich

SIZE = 8
TYPE = f"tensor<{SIZE}x{SIZE}xf32>"
VECTOR = f"tensor<{SIZE}xf32>"
MATRICES = ("[{}, {}]", '[{"x"}, {}]', '[{}, {"x"}]', '[{"y"}, {"x"}]', '[{"x", "y"}, {}]', '[{}, {"y", "x"}]')
VECTORS = ("[{}]", '[{"x"}]', '[{"y"}]', '[{"x", "y"}]')


@dataclass
class Program:
    """Lines of a function, the matrices that it computes by name, and the number of its values."""

    random: Random
    lines: list[str]
    matrices: dict[str, Array]
    count: int = 0

    def value(self, op: str, type_: str, shardings: Sequence[str] = MATRICES) -> str:
        """Adds an op with a random sharding, and returns the name of its result."""
        name = f"%{self.count}"
        self.count += 1
        sharding = f"#sdy.sharding_per_value<[<@mesh, {self.random.choice(shardings)}>]>"
        self.lines.append(f"  {name} = {op} {{sdy.sharding = {sharding}}} : {type_}")
        return name

    def add(self) -> None:
        """Adds a random op, which computes a new matrix from one or two existing ones."""
        one, other = (self.random.choice(list(self.matrices)) for _ in range(2))
        left, right = self.matrices[one], self.matrices[other]
        kind = self.random.choice(("dot", "dot", "add", "transpose", "sum"))
        if kind == "dot":
            name = self.value(f"stablehlo.dot {one}, {other}", f"({TYPE}, {TYPE}) -> {TYPE}")
            result = left @ right
        elif kind == "add":
            name = self.value(f"stablehlo.add {one}, {other}", TYPE)
            result = left + right
        elif kind == "transpose":
            name = self.value(f"stablehlo.transpose {one}, dims = [1, 0]", f"({TYPE}) -> {TYPE}")
            result = left.T
        else:
            reduce = f"stablehlo.reduce({one} init: %zero) applies stablehlo.add across dimensions = [1]"
            summed = self.value(reduce, f"({TYPE}, tensor<f32>) -> {VECTOR}", VECTORS)
            name = self.value(f"stablehlo.broadcast_in_dim {summed}, dims = [1]", f"({VECTOR}) -> {TYPE}")
            result = np.tile(left.sum(axis=1), (SIZE, 1))
        self.matrices[name] = result


def random_program(random: Random, inputs: list[Array], count: int = 10) -> tuple[str, Array]:
    """Returns a function of random ops with random shardings, and its result."""
    names = [f"%a{index}" for index in range(len(inputs))]
    program = Program(random, ["  %zero = stablehlo.constant dense<0.0> : tensor<f32>"], {})
    program.matrices.update(zip(names, inputs, strict=True))
    for _ in range(count):
        program.add()
    arguments = ", ".join(f"{name}: {TYPE} {attribute(random)}" for name in names)
    name, result = list(program.matrices.items())[-1]
    body = "\n".join(program.lines)
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main({arguments}) -> ({TYPE} {attribute(random)}) {{
{body}
  return {name} : {TYPE}
}}"""
    return text, result


def attribute(random: Random) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {random.choice(MATRICES)}>}}"


def resharding(planner: str) -> str:
    return f"func.func(sdy-insert-explicit-reshards{{enable-full-version=true planner={planner}}})"


@pytest.mark.parametrize("seed", range(4))
def test_random_program(seed: int) -> None:
    random = Random(seed)
    generator = np.random.default_rng(seed)
    inputs = [generator.uniform(-0.5, 0.5, (SIZE, SIZE)).astype(np.float32) for _ in range(3)]
    text, expected = random_program(random, inputs)
    context = mlir_shard.create_context()
    texts = []
    for planner in ("shardy", "optimal"):
        module = mlir_shard.parse(text, context)
        mlir_shard.run(module, f"builtin.module({resharding(planner)})")
        texts.append(str(module))
    assert texts[0] != texts[1]
    pipelines = Pipelines("sdy-close-shardings", f"{resharding('optimal')},spmdize,cse")
    (result,) = execute(mlir_shard.parse(text, context), inputs, pipelines=pipelines)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
