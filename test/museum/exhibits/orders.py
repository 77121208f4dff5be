# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exhibits that reorder elements: sorts, scatters, transforms, views, random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from model_zoo.program import Draw

from museum.exhibit import Parts, exhibit

NOWHERE = P()
ROWS, COLUMNS = P("x", None), P(None, "x")


@exhibit("jax-ml/jax", 19271, "the largest element along a sharded dimension is not the first of the four largest")
def largest_elements() -> Parts:
    def largest(x: Any) -> Any:
        return lax.top_k(x, 1), lax.top_k(x, 4)

    return largest, (Draw("largest").normal(2, 256),), {"x": 8}, (COLUMNS,), None


@exhibit("jax-ml/jax", 23052, "a scatter into a sharded matrix gives other elements than without sharding")
def scatter_into_a_sharded_matrix() -> Parts:
    def update(x: Any, rows: Any, values: Any) -> Any:
        numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return lax.scatter(x, rows[:, None], values, numbers, mode=lax.GatherScatterMode.CLIP)

    draw = Draw("scatter")
    arguments = (draw.normal(8, 6), np.array([1, 6, 4], np.int32), draw.normal(3, 6))
    return update, arguments, {"x": 4}, (ROWS, NOWHERE, NOWHERE), ROWS


@exhibit("jax-ml/jax", 16909, "a Fourier transform along sharded dimensions differs from that of the whole array")
def sharded_transform() -> Parts:
    def transform(x: Any) -> Any:
        found = jnp.fft.fftn(x)
        return found.real, found.imag

    return transform, (Draw("transform").normal(4, 4, 4),), {"x": 2}, (P(None, "x"),), None


@exhibit("openxla/xla", 45402, "a Fourier transform along a dimension of one element a device ends the compiler")
def small_transform() -> Parts:
    def transform(x: Any) -> Any:
        found = jnp.fft.fft(lax.with_sharding_constraint(x.astype(jnp.complex64), P(None, None, "x")))
        return found.real, found.imag

    return transform, (np.array([[[1.0, 2.0]]], np.float32),), {"x": 2}, (P(None, None, "x"),), None


@exhibit("jax-ml/jax", 21232, "random numbers depend on how they are sharded")
def random_numbers() -> Parts:
    def draw(seed: Any) -> Any:
        key = jax.random.key(seed)
        normal = lax.with_sharding_constraint(jax.random.normal(key, (12, 8)), P("x", "y"))
        return normal, lax.with_sharding_constraint(jax.random.bits(key, (8, 6)), P("y", None))

    return draw, (np.uint32(7),), {"x": 4, "y": 2}, (NOWHERE,), None


@exhibit("jax-ml/jax", 40232, "a random number depends on the number of shards")
def permuted_and_dropped() -> Parts:
    def draw(seed: Any, x: Any) -> Any:
        one, other = jax.random.split(jax.random.key(seed))
        kept = jax.random.bernoulli(one, 0.5, x.shape)
        return jnp.where(kept, x, 0), jax.random.permutation(other, x, axis=0)

    return draw, (np.uint32(3), Draw("drop").normal(16, 3)), {"x": 8}, (NOWHERE, ROWS), None


@exhibit("pytorch/pytorch", 179502, "a view across a sharded dimension keeps the shards, and exchanges elements")
def view_across_shards() -> Parts:
    x = np.arange(96, dtype=np.float32).reshape(12, 8)
    return lambda x: x.reshape(16, 6) * 2, (x,), {"x": 4}, (COLUMNS,), None


@exhibit("pytorch/pytorch", 194457, "uneven shards along two axes are gathered as if they were shards along one axis")
def uneven_shards_along_two_axes() -> Parts:
    def gather(x: Any) -> Any:
        nested = lax.with_sharding_constraint(x, P(("x", "y"), None))
        return lax.with_sharding_constraint(nested * 2, P())

    return gather, (np.arange(15, dtype=np.float32).reshape(5, 3),), {"x": 2, "y": 2}, (NOWHERE,), NOWHERE


@exhibit("pytorch/pytorch", 168134, "uneven shards of a dimension that is flattened have gaps")
def flattened_uneven_shards() -> Parts:
    def flatten(x: Any) -> Any:
        x = lax.with_sharding_constraint(x, P(None, "x"))
        return x.reshape(10) + 1

    return flatten, (np.arange(10, dtype=np.float32).reshape(2, 5),), {"x": 2}, (NOWHERE,), None
