# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the bytes that a device receives in language models from JAX, and of their results, for both targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P

DRAW = np.random.default_rng(0)
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


def normalized(h: Any) -> Any:
    return h * jax.lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-6)


def language_model(params: Any, tokens: Any) -> Any:
    """Returns the cross-entropy of the next tokens; the head is the embedding if `params` has no other one."""
    h = params["embedding"][tokens]
    h = normalized(h + jax.nn.gelu(normalized(h) @ params["up"]) @ params["down"])
    logits = jax.nn.log_softmax((h @ params.get("head", params["embedding"].T))[:, :-1])
    return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()


def arguments(vocabulary: int, width: int, batch: int, length: int, is_tied: bool, make: Callable[..., Any]) -> Any:
    shapes = {"embedding": (vocabulary, width), "up": (width, 4 * width), "down": (4 * width, width)}
    shapes |= {} if is_tied else {"head": (width, vocabulary)}
    return {name: make(*shape) for name, shape in shapes.items()}, make(batch, length, kind=np.int32)


def drawn(*shape: int, kind: type = np.float32) -> np.ndarray:
    return DRAW.integers(0, 32, shape, kind) if kind is np.int32 else DRAW.standard_normal(shape, np.float32) / 4


def abstract(*shape: int, kind: type = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, kind)


ON_DATA = {"embedding": P("data"), "up": P("data"), "down": P("data"), "head": P(None, "data")}
ON_BOTH = {
    "embedding": P("data", "tensor"),
    "up": P("data", "tensor"),
    "down": P("tensor", "data"),
    "head": P("tensor", "data"),
}


@pytest.mark.parametrize("is_tied", [False, True], ids=["own head", "tied"])
@pytest.mark.parametrize(
    ("specs", "small", "mesh"),
    [
        pytest.param(ON_DATA, {"data": 4}, {"data": 8}, id="data"),
        pytest.param(ON_BOTH, {"data": 2, "tensor": 2}, {"data": 8, "tensor": 4}, id="data and tensor"),
    ],
)
def test_vocabulary_along_the_axis_of_the_batch(
    specs: Mapping[str, Any], small: Mapping[str, int], mesh: Mapping[str, int], is_tied: bool
) -> None:
    """The logits and their gradient have the same sharding, so no tensor of their size moves."""
    step = jax.value_and_grad(language_model)

    def program(given: Any, mesh: Mapping[str, int]) -> Any:
        params = {name: specs[name] for name in given[0]}
        return ms.from_jax(step, *given, mesh=ms.Mesh(mesh), in_shardings=(params, P("data")))

    given = arguments(32, 8, 4, 6, is_tied, drawn)
    wanted = jax.tree.leaves(jax.jit(step)(*given))
    for target, engine in ENGINES.items():
        with program(given, small).compile(engine, collectives=target) as compiled:
            for got, one in zip(jax.tree.leaves(compiled(*given)), wanted, strict=True):
                np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-5)
    large = program(arguments(32_000, 1024, 32, 512, is_tied, abstract), mesh)
    weights, logits = 2 * 1024 * 4096 * 4, 32 * 512 * 32_000 * 4
    for target in ENGINES:
        found = large.partition(target).communication
        # The weights are gathered and their gradients reduced; activations are gathered or reduced a few times.
        assert found.bytes_received < 2 * weights + 5 * 32 * 512 * 1024 * 4 < logits // 4, f"{target}: {found}"
