# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the perceptrons of docs/examples, on several meshes, with NumPy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from runtime.local_program import needs_mpich

import mlir_shard
from mlir_shard.runtime import execute
from mlir_shard.runtime.arrays import Array

pytestmark = needs_mpich

EXAMPLES = Path(__file__).resolve().parents[4] / "docs" / "examples"

# The sizes of the axes "data" and "model"; absent axes are removed from the program first.
MESHES = {"2x2": {"data": 2, "model": 2}, "4 by rows": {"data": 4}, "4 by columns": {"model": 4}, "2": {"model": 2}}


def on_mesh(text: str, axes: dict[str, int]) -> str:
    """Returns a perceptron annotated for sdy with another mesh, whose axes are a subset of the original ones."""
    for name in {"data", "model"} - axes.keys():
        text = text.replace(f'"{name}"', "")
        text = re.sub(r"\{, |, \}", lambda found: found[0].replace(", ", ""), text)
    sizes = ", ".join(f'"{name}"={size}' for name, size in axes.items())
    text = re.sub(r" \{stablehlo\.mesh = .*\}", "", text)
    return re.sub(r"@mesh = <\[.*?\]>", f"@mesh = <[{sizes}]>", text)


def on_grid(text: str, axes: dict[str, int]) -> str:
    """Returns the perceptron annotated with upstream's shard dialect for another grid."""
    positions = {name: str(index) for index, name in enumerate(axes)}
    text = text.replace("shape = 2x2", f"shape = {'x'.join(map(str, axes.values()))}")

    def renumber(found: re.Match[str]) -> str:
        kept = {"0": positions.get("data", ""), "1": positions.get("model", "")}
        return "split_axes = " + re.sub(r"\d", lambda axis: kept[axis[0]], found[1])

    return re.sub(r"split_axes = (\[.*\])", renumber, text)


def perceptron(x: Array, w1: Array, b1: Array, w2: Array) -> Array:
    result: Array = np.maximum(x @ w1 + b1, 0) @ w2
    return result


@pytest.mark.parametrize("axes", MESHES.values(), ids=MESHES.keys())
@pytest.mark.parametrize("form", ["linalg", "stablehlo", "shard"])
def test_perceptron(form: str, axes: dict[str, int]) -> None:
    text = (EXAMPLES / f"perceptron_{form}.mlir").read_text()
    text = on_grid(text, axes) if form == "shard" else on_mesh(text, axes)
    module = mlir_shard.parse(text, mlir_shard.create_context())
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape).astype(np.float32) for shape in [(8, 16), (16, 32), (32,), (32, 8)]]
    ranks = int(np.prod(list(axes.values())))
    (result,) = execute(module, inputs, ranks)
    np.testing.assert_allclose(result, perceptron(*inputs), rtol=1e-5, atol=1e-5)
