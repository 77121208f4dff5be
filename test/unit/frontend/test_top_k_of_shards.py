# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the largest elements along sharded dimensions of programs from JAX: bytes and results, for both targets."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P

DRAW = np.random.default_rng(0)
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


def few_numbers(*shape: int) -> np.ndarray:
    """Returns floats of which most equal others, so that their order matters."""
    return DRAW.integers(-4, 4, shape).astype(np.float32)


def special(rows: int, length: int) -> np.ndarray:
    """Returns rows whose last elements are the least ones, some of which are taken."""
    x = np.full((rows, length), np.copysign(np.nan, -1), np.float32)
    x[:, length // 2] = -np.inf
    x[:, 1] = np.nan
    x[:, ::200] = -0.0
    x[:, 3::200] = 0.0
    return x


CASES = {
    "vocabulary": (few_numbers(4, 4096), P("a", "b"), (), 5, 2 * 3 * 40),
    "an axis of rows is free": (few_numbers(8, 4096), P(None, "b"), (), 5, 8 * 3 * 40),
    "one row": (few_numbers(4096), P(("b", "a")), (), 3, 7 * 24),
    "beams": (few_numbers(4, 3, 2000), P("a", None, "b"), (4, -1), 4, 2 * 3 * 3 * 32),
    "both sharded": (few_numbers(4, 6, 2000), P(None, "a", "b"), (4, -1), 4, 4 * (6 * 4 - 3) * 32),
    "integers": (few_numbers(2, 4096).astype(np.int16), P(None, "b"), (), 5, 2 * 3 * 30),
    "a shard of fewer elements": (few_numbers(2, 3, 16), P(None, None, "b"), (2, -1), 9, None),
    "uneven": (few_numbers(2, 4001), P(None, "b"), (), 5, None),
    "uneven, the least numbers": (special(2, 1001), P(None, "b"), (), 40, None),
}


@pytest.mark.parametrize("name", CASES)
def test_top_k(name: str) -> None:
    x, spec, shape, count, received = CASES[name]

    def largest(x: Any) -> Any:
        return jax.lax.top_k(x.reshape(shape) if shape else x, count)

    wanted = jax.jit(largest)(x)
    program = ms.from_jax(largest, x, mesh=ms.Mesh({"a": 2, "b": 4}), in_shardings=(spec,))
    for target, engine in ENGINES.items():
        found = program.partition(target).communication
        assert received is None or found.bytes_received == received, found
        with program.compile(engine, collectives=target) as compiled:
            for got, one in zip(compiled(x), wanted, strict=True):
                np.testing.assert_array_equal(got, one)


def test_step_of_a_beam_search() -> None:
    def step(logits: Any, scores: Any, cache: Any) -> Any:
        total = scores[..., None] + jax.nn.log_softmax(logits)
        found, places = jax.lax.top_k(total.reshape(len(total), -1), 4)
        beams, tokens = places // logits.shape[-1], places % logits.shape[-1]
        return found, tokens, jnp.take_along_axis(cache, beams[:, :, None, None], 1)

    shapes = (16, 4, 32_000), (16, 4), (16, 4, 512, 64)
    specs = P("data", None, "t"), P("data"), P("data", None, None, "t")
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    program = ms.from_jax(step, *arguments, mesh=ms.Mesh({"data": 4, "t": 8}), in_shardings=specs)
    for target in ENGINES:
        # The maxima and sums of the softmax, and 8 candidates for each shard of a beam.
        candidates = 7 * 4 * 4 * 4 * 8
        assert program.partition(target).communication.bytes_received == candidates + 2 * (2 * 7 * 4 * 4 * 4 // 8)
