# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `jax.lax.approx_max_k` and `approx_min_k`, which run as an exact top-k on shards of the batch."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P

MESH = ms.Mesh({"a": 2, "b": 3})


def search(x: Any) -> Any:
    return (
        jax.lax.approx_max_k(x, 4),
        jax.lax.approx_min_k(x, 3, reduction_dimension=0, recall_target=0.5),
        jax.lax.approx_max_k(x, 5, aggregate_to_topk=False),
    )


def nearest(x: Any) -> Any:
    return jax.lax.approx_min_k(x, 4)


@pytest.mark.parametrize("engine", ["mpi", "pjrt"])
@pytest.mark.parametrize(
    ("rows", "spec"), [(8, P("a")), (5, P(("a", "b"))), (6, P("b", "a")), (8, P(None, ("a", "b")))]
)
def test_it_selects_the_extreme_elements(rows: int, spec: P, engine: str) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    program = ms.from_jax(search, x, mesh=MESH, in_shardings=(spec,))
    got, wanted = program.compile(engine)(x), jax.jit(search)(x)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(got[0][0], -np.sort(-x, 1)[:, :4])


def test_rows_stay_sharded() -> None:
    program = ms.from_jax(nearest, np.zeros((12, 64), np.float32), mesh=MESH, in_shardings=(P(("a", "b")),))
    assert not program.partition().communication.collectives
    assert str(program.shardings()["result[0]"]) == '<@mesh, [{"a", "b"}, {}]>'
