# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a transformer block in f16 and bf16, sharded on data and model over four MPI ranks, for old and new CPUs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from runtime import in_process
from runtime.local_program import needs_mpich

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.launch.cpu import NATIVE
from mlir_shard.runtime.launch.mpi import MpiEngine
from mlir_shard.runtime.reference.verify import compare
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = needs_mpich

BATCH, LENGTH, WIDTH, HEADS, HIDDEN = 4, 8, 16, 4, 32
SHAPES: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "x": ((BATCH, LENGTH, WIDTH), ("data", "", "")),
    "query": ((WIDTH, HEADS, WIDTH // HEADS), ("", "model", "")),
    "key": ((WIDTH, HEADS, WIDTH // HEADS), ("", "model", "")),
    "value": ((WIDTH, HEADS, WIDTH // HEADS), ("", "model", "")),
    "out": ((HEADS, WIDTH // HEADS, WIDTH), ("model", "", "")),
    "up": ((WIDTH, HIDDEN), ("", "model")),
    "down": ((HIDDEN, WIDTH), ("model", "")),
}


def normalized(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-3)


def block(x: Any, query: Any, key: Any, value: Any, out: Any, up: Any, down: Any) -> Any:
    h = normalized(x)
    q, k, v = (jnp.einsum("bsd,dhk->bshk", h, weights) for weights in (query, key, value))
    scores = jnp.einsum("bshk,bthk->bhst", q, k) * (WIDTH // HEADS) ** -0.5
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e4))
    x = x + jnp.einsum("bshk,hkd->bsd", jnp.einsum("bhst,bthk->bshk", weights, v), out)
    return x + jax.nn.gelu(normalized(x) @ up) @ down


def annotated(dtype: Any) -> Any:
    """Returns the block as lowered by JAX, with shardings of its arguments."""
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, _ in SHAPES.values()]
    module = mlir_shard.parse(jax.jit(block).lower(*arguments).as_text(), mlir_shard.create_context())
    main = next(op.operation for op in module.body.operations if op.operation.attributes["sym_name"].value == "main")
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(module.body):
        sdy.MeshOp("mesh", Mesh([("data", 2), ("model", 2)]))
        for argument, (_, axes) in zip(main.regions[0].blocks[0].arguments, SHAPES.values(), strict=True):
            dims = [[AxisRef(axis)] if axis else [] for axis in axes]
            sdy.set_sharding(argument, TensorSharding.closed_with(dims, "mesh"))
    return module


@pytest.mark.parametrize(("element_type", "cpu"), [("bf16", NATIVE), ("bf16", "x86-64-v2"), ("f16", "x86-64-v2")])
def test_four_ranks_compute_what_one_does(element_type: str, cpu: str) -> None:
    dtype = {"f16": jnp.float16, "bf16": jnp.bfloat16}[element_type]
    compiled = compile_module(annotated(dtype), lower=partial(in_process.lower_whole, cpu=cpu))
    generator = np.random.default_rng(0)
    inputs = [(generator.standard_normal(shape) / 4).astype(dtype) for shape, _ in SHAPES.values()]
    assert compiled.sharded.ranks == 4
    assert "MPI_Allreduce" in compiled.sharded.text
    (found,) = run_program(compiled.sharded, inputs, MpiEngine())
    assert compiled.unsharded is not None
    (expected,) = run_program(compiled.unsharded, inputs, in_process.Engine())
    assert not found.disagreement
    assert compare(found.array, expected.array, element_type).is_equal
    in_f32 = block(*(one.astype(np.float32) for one in inputs))
    np.testing.assert_allclose(found.array.astype(np.float32), in_f32, atol=0.1)
