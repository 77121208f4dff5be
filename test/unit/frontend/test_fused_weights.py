# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs from JAX whose weights have several parts in one dimension that is sharded: bytes and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P

DRAW = np.random.default_rng(0)
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


def gated(x: Any, w: Any, bias: Any, out: Any) -> Any:
    gate, up = jnp.split(x @ w + bias, 2, -1)
    return (jax.nn.silu(gate) * up) @ out


def mixed(x: Any, w: Any, bias: Any, out: Any, heads: Callable[[Any], Sequence[Any]]) -> Any:
    q, k, v = heads(x @ w + bias)
    scores = jnp.einsum("bshd,bthd->bhst", q, k) / 8
    mixed = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(scores), v)
    return mixed.reshape(x.shape[:2] + out.shape[:1]) @ out


def attention(x: Any, w: Any, bias: Any, out: Any) -> Any:
    def heads(y: Any) -> Sequence[Any]:
        return [one.reshape(*y.shape[:2], 8, -1) for one in jnp.split(y, 3, -1)]

    return mixed(x, w, bias, out, heads)


def reshaped_attention(x: Any, w: Any, bias: Any, out: Any) -> Any:
    return mixed(x, w, bias, out, lambda y: jnp.moveaxis(y.reshape(*y.shape[:2], 3, 8, -1), 2, 0))


def recurrent(x: Any, w: Any, bias: Any, out: Any) -> Any:
    h = c = jnp.zeros((*x.shape[:-1], out.shape[0]))
    for _ in range(2):
        i, f, g, o = jnp.split(x @ w + h @ jnp.tanh(w[: out.shape[0]]) + bias, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ out


def gradient(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: jax.grad(lambda *args: jnp.sum(jnp.sin(of(*args))), (0, 1, 2, 3))(*arguments)


MODELS = {
    "gated": (gated, 2),
    "attention": (attention, 3),
    "reshaped": (reshaped_attention, 3),
    "recurrent": (recurrent, 4),
}
SPECS = P("data"), P(None, "tensor"), P("tensor"), P("tensor")


def shapes(batch: int, width: int, parts: int) -> list[tuple[int, ...]]:
    return [(batch, 12, width), (width, parts * width), (parts * width,), (width, width)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("is_gradient", [False, True], ids=["forward", "gradient"])
def test_results(name: str, is_gradient: bool) -> None:
    model, parts = MODELS[name]
    function = gradient(model) if is_gradient else model
    # With many rows, parts of the weights have fewer bytes than those of the activations.
    arguments = [DRAW.standard_normal(one).astype(np.float32) / 4 for one in shapes(16, 32, parts)]
    program = ms.from_jax(function, *arguments, mesh=ms.Mesh({"data": 2, "tensor": 4}), in_shardings=SPECS)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for target, engine in ENGINES.items():
        with program.compile(engine, collectives=target) as compiled:
            for got, one in zip(jax.tree.leaves(compiled(*arguments)), wanted, strict=True):
                np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "received"),
    [
        # The sum of the results on four devices, twice their shard, and the parts of a quarter of the weight.
        pytest.param("gated", 2 * 3 * 2048 * 12 * 512 + 2 * 512 * 512 * 4, id="two of four"),
        pytest.param("attention", 2 * 3 * 2048 * 12 * 512 + 2 * 3 * 512 * 512 * 4, id="three of four"),
        pytest.param("reshaped", 2 * 3 * 2048 * 12 * 512 + 2 * 3 * 512 * 512 * 4, id="reshape to three of four"),
    ],
)
def test_bytes_do_not_grow_with_activations(name: str, received: int) -> None:
    model, parts = MODELS[name]
    arguments = [jax.ShapeDtypeStruct(one, np.float32) for one in shapes(4096, 512, parts)]
    program = ms.from_jax(model, *arguments, mesh=ms.Mesh({"data": 2, "tensor": 4}), in_shardings=SPECS)
    for target in ENGINES:
        assert program.partition(target).communication.bytes_received <= received
