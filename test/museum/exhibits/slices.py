# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exhibits of slices, updates of slices, and shifts along sharded dimensions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from model_zoo.program import Draw

from museum.exhibit import Parts, exhibit

NOWHERE, LINE = P(), P("x")
ROWS, COLUMNS = P("x", None), P(None, "x")


@exhibit("openxla/xla", 49118, "an update whose start is out of bounds is dropped, as no shard clamps it")
def clamped_update() -> Parts:
    def update(x: Any, part: Any, start: Any) -> Any:
        return lax.dynamic_update_slice(x, part, (jnp.int32(0), start))

    arguments = (np.arange(16, dtype=np.int32).reshape(2, 8), np.full((2, 1), 99, np.int32), np.int32(20))
    return update, arguments, {"x": 2}, (COLUMNS, NOWHERE, NOWHERE), COLUMNS


@exhibit("openxla/xla", 49122, "a start that is out of bounds is clamped on each shard, and not for the whole slice")
def clamped_slice() -> Parts:
    def cut(x: Any, start: Any) -> Any:
        return lax.dynamic_slice(x, (jnp.int32(0), start), (2, 6))

    arguments = (np.arange(16, dtype=np.int32).reshape(2, 8), np.int32(7))
    return cut, arguments, {"x": 2}, (COLUMNS, NOWHERE), COLUMNS


@exhibit("openxla/xla", 24186, "the offset of a shard has another integer type than a 64-bit start, an error")
def update_at_a_wide_start() -> Parts:
    def update(x: Any, part: Any, start: Any) -> Any:
        return lax.dynamic_update_slice(x, part, (start,))

    arguments = (np.arange(16.0), np.array([-1.0, -2.0]), np.int64(7))
    return update, arguments, {"x": 4}, (LINE, NOWHERE, NOWHERE), LINE


@exhibit("tenstorrent/tt-mlir", 9274, "a dynamic slice keeps the size of the whole slice on each shard")
def slice_of_other_sizes() -> Parts:
    def cut(x: Any, start: Any) -> Any:
        return lax.dynamic_slice(x, (start, jnp.int32(4)), (3, 8))

    return cut, (Draw("cut").normal(6, 16), np.int32(2)), {"x": 4}, (COLUMNS, NOWHERE), COLUMNS


@exhibit(
    "tenstorrent/tt-mlir", 9167, "the bounds of a slice are divided by the number of shards: other chunks are read"
)
def chunks() -> Parts:
    def chunk(x: Any, w: Any) -> Any:
        parts = jnp.split(x @ w, 6, axis=-1)
        return parts[0] * (1 + parts[4]) + parts[2], parts[5] - parts[1] * parts[3]

    draw = Draw("chunks")
    return chunk, (draw.normal(3, 8), draw.normal(8, 48)), {"x": 4}, (NOWHERE, COLUMNS), None


@exhibit("tenstorrent/tt-mlir", 4799, "the first index of a strided slice is divided by the number of shards")
def odd_columns() -> Parts:
    return lambda x: x[..., 1::2], (Draw("odd").normal(2, 3, 16),), {"x": 4}, (P(None, None, "x"),), None


@exhibit("jax-ml/jax", 18434, "rows that move up by one across shards come from the wrong shard")
def shift_and_assign() -> Parts:
    def assign(x: Any, value: Any) -> Any:
        return x.at[:-1, :].set(x[1:, :]).at[-1, :].set(value)

    return assign, (Draw("shift").normal(16, 16), np.float32(1.5)), {"x": 8}, (ROWS, NOWHERE), None


@exhibit("jax-ml/jax", 22827, "every second row is set, and all rows are 0 where each is on a device of its own")
def every_second_row() -> Parts:
    return lambda x: x.at[::2].set(0), (np.ones((4, 128), np.float32),), {"x": 4}, (ROWS,), None


@exhibit("jax-ml/jax", 39301, "two rolls on one row a device become concatenations of the wrong operands")
def transposed_rolls() -> Parts:
    def stencil(x: Any) -> Any:
        return jnp.roll(x, 1) + jnp.roll(x, -1)

    def loss(x: Any) -> Any:
        (spread,) = jax.linear_transpose(stencil, jax.ShapeDtypeStruct((4,), x.dtype))(x)
        return jnp.sum(spread**2)

    return jax.grad(loss), (np.arange(4, dtype=np.float32),), {"x": 4}, (LINE,), LINE


@exhibit("jax-ml/jax", 19106, "a replicated and a sharded array are joined, and each element is the sum of its copies")
def replicated_beside_sharded() -> Parts:
    def join(x: Any, y: Any) -> Any:
        return jnp.concatenate([x, y])

    arguments = (np.ones(2, np.float32), np.arange(10, dtype=np.float32))
    return join, arguments, {"data": 4, "model": 2}, (NOWHERE, P("model")), None


@exhibit("jax-ml/jax", 24576, "sharded arrays are joined on a mesh with another axis, and each element is doubled")
def joined_beside_an_axis() -> Parts:
    def join(x: Any, y: Any) -> Any:
        return jnp.concatenate([x, y])

    arguments = (np.ones(4, np.float32), np.arange(12, dtype=np.float32))
    return join, arguments, {"data": 4, "model": 2}, (P("data"), P("data")), None


@exhibit("tenstorrent/tt-xla", 2601, "copies of a tensor for the experts of a layer are joined in the wrong order")
def copies_for_experts() -> Parts:
    def experts(x: Any, w: Any) -> Any:
        copies = jnp.concatenate([x] * 8, axis=0).reshape(8, 4, 6)
        return jnp.einsum("ebi,eio->ebo", copies, w)

    draw = Draw("experts")
    return experts, (draw.normal(4, 6), draw.normal(8, 6, 10)), {"x": 8}, (NOWHERE, P("x")), P("x")
