# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exhibits of reductions, scans and computations on partial sums."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from model_zoo.program import Draw

from museum.exhibit import Parts, exhibit

NOWHERE, LINE = P(), P("x")
ROWS, COLUMNS = P("x", None), P(None, "x")


@exhibit("jax-ml/jax", 21403, "a cumulative sum along a sharded dimension is wrong from the second shard on")
def cumulative_sum() -> Parts:
    def sums(x: Any) -> Any:
        x = jax.lax.with_sharding_constraint(x, P("data", "sequence"))
        return jnp.cumsum(x, axis=-1)

    return sums, (np.ones((4, 64), np.int32),), {"data": 2, "sequence": 4}, (NOWHERE,), NOWHERE


@exhibit("tenstorrent/tt-mlir", 8623, "the indices of an argmax along a sharded dimension are summed over the shards")
def argmax_of_logits() -> Parts:
    def pick(x: Any, w: Any) -> Any:
        return jnp.argmax(x @ w, axis=-1)

    draw = Draw("argmax")
    return pick, (draw.normal(3, 8), draw.normal(8, 32)), {"x": 4}, (NOWHERE, COLUMNS), None


@exhibit("pytorch/pytorch", 173936, "an argmax is the largest of the indices that shards find")
def argmin_and_argmax() -> Parts:
    def both(x: Any) -> Any:
        return jnp.argmax(x), jnp.argmin(x)

    return both, (np.array([10, 5, 3, 8, 2, 9, 7, 1], np.float32),), {"x": 2}, (LINE,), None


@exhibit("pytorch/pytorch", 175776, "the indices beside the maxima along a sharded dimension are those within shards")
def maxima_with_indices() -> Parts:
    def both(x: Any) -> Any:
        at = jnp.argmax(x, axis=1)
        return jnp.max(x, axis=1), at, jnp.take_along_axis(x, at[:, None], axis=1)

    return both, (Draw("maxima").normal(6, 12),), {"x": 4}, (COLUMNS,), None


@exhibit("pytorch/pytorch", 162692, "the mean over shards of different sizes is the mean of the means of the shards")
def mean_of_uneven_shards() -> Parts:
    def means(x: Any) -> Any:
        x = jax.lax.with_sharding_constraint(x, ROWS)
        return x.mean(), x.mean(axis=0), x.var()

    return means, (np.arange(12, dtype=np.float32).reshape(3, 4),), {"x": 2}, (NOWHERE,), None


@exhibit("pytorch/pytorch", 163193, "a number is added to a partial sum on each device, and counted several times")
def number_added_to_a_partial_sum() -> Parts:
    return lambda x: x.sum() + 10, (np.arange(10, dtype=np.float32)[:, None],), {"x": 2}, (ROWS,), None


@exhibit("pytorch/pytorch", 149768, "clipping by a norm adds its epsilon once for each device")
def clipped_by_norm() -> Parts:
    def clip(gradient: Any) -> Any:
        norm = jnp.sqrt(jnp.sum(gradient**2))
        return gradient * jnp.minimum(1.0, 1.0 / (norm + 0.5))

    return clip, (Draw("clip").normal(16, 4),), {"x": 8}, (ROWS,), ROWS


@exhibit("pytorch/pytorch", 165962, "the maximum of partial sums is taken before they are summed")
def maximum_of_partial_sums() -> Parts:
    def largest(x: Any, w: Any) -> Any:
        product = x @ w
        return product.max(), product.min(axis=0)

    draw = Draw("largest")
    return largest, (draw.normal(6, 16), draw.normal(16, 5)), {"x": 4}, (COLUMNS, ROWS), None


@exhibit("pytorch/pytorch", 159856, "the norm of partial sums is taken of the part on each device")
def norm_of_partial_sums() -> Parts:
    def norms(x: Any, w: Any) -> Any:
        product = x @ w
        return jnp.linalg.norm(product), jnp.abs(product).sum(axis=1)

    draw = Draw("norm")
    return norms, (draw.normal(6, 16), draw.normal(16, 5)), {"x": 4}, (COLUMNS, ROWS), None


@exhibit("pytorch/pytorch", 185167, "a weighted mean loss divides by the weights of each shard of the batch")
def weighted_loss() -> Parts:
    def loss(scores: Any, labels: Any, weights: Any) -> Any:
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1)[:, 0]
        weight = weights[labels]
        return -(chosen * weight).sum() / weight.sum()

    arguments = (Draw("loss").normal(8, 5), np.arange(8, dtype=np.int32) // 2, np.arange(1, 6, dtype=np.float32))
    return loss, arguments, {"x": 4}, (ROWS, NOWHERE, NOWHERE), None


@exhibit("pytorch/pytorch", 190746, "the gradient of a log-softmax over sharded classes is taken to be the identity")
def gradient_of_log_softmax() -> Parts:
    def entropy(x: Any) -> Any:
        logarithms = jax.nn.log_softmax(x)
        return -(jnp.exp(logarithms) * logarithms).sum()

    return jax.grad(entropy), (Draw("entropy").normal(3, 16),), {"x": 4}, (COLUMNS,), COLUMNS


@exhibit("NVIDIA/physicsnemo", 1944, "the gradient of a replicated operand has only what its own device contributes")
def gradient_of_a_replicated_operand() -> Parts:
    def crossed(axis: Any, points: Any) -> Any:
        return (jnp.cross(points, axis) ** 2).sum()

    draw = Draw("crossed")
    return jax.grad(crossed), (draw.normal(3), draw.normal(8, 3)), {"x": 4}, (NOWHERE, ROWS), None
