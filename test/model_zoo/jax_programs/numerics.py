# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs, simulation, statistics, integer and narrow arithmetic."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model

_BATCH = {"data": 8}


@model
def graph_network() -> Model:
    """Messages along sharded edges, summed for each node."""
    draw = Draw("graph_network")
    nodes, edges, width = 32, 128, 16
    weights = {"message": draw.weight(2 * width, width), "update": draw.weight(2 * width, width)}

    def loss(weights: Any, x: Any, senders: Any, receivers: Any) -> Any:
        message = jax.nn.relu(jnp.concatenate([x[senders], x[receivers]], axis=-1) @ weights["message"])
        received = jax.ops.segment_sum(message, receivers, num_segments=nodes)
        return jnp.mean(jnp.tanh(jnp.concatenate([x, received], axis=-1) @ weights["update"]) ** 2)

    arguments = (weights, draw.normal(nodes, width), draw.integers(nodes, (edges,)), draw.integers(nodes, (edges,)))
    specs = (P(), P(), P("data"), P("data"))
    return Model("graph_network", jax.grad(loss), arguments, _BATCH, specs, P(), 1e-3)


@model
def embedding_bag() -> Model:
    """Sums of rows of a table that is sharded by rows, and the gradient of the table."""
    draw = Draw("embedding_bag")

    def loss(table: Any, bags: Any) -> Any:
        return jnp.mean(table[bags].sum(axis=1) ** 2)

    arguments = (draw.normal(64, 16), draw.integers(64, (8, 5)))
    specs = (P("model", None), P("data"))
    mesh = {"data": 2, "model": 4}
    return Model("embedding_bag", jax.grad(loss), arguments, mesh, specs, P("model", None), 1e-3)


@model
def k_means() -> Model:
    """Steps of k-means on sharded points."""
    draw = Draw("k_means")

    def step(points: Any, centers: Any) -> Any:
        for _ in range(2):
            nearest = jnp.argmin(jnp.sum((points[:, None] - centers[None]) ** 2, -1), axis=-1)
            member = jax.nn.one_hot(nearest, centers.shape[0])
            centers = (member.T @ points) / (member.sum(axis=0)[:, None] + 1e-6)
        return centers

    arguments = (draw.normal(256, 4), draw.normal(8, 4))
    return Model("k_means", step, arguments, _BATCH, (P("data"), P()), P(), 1e-3)


@model
def heat_equation() -> Model:
    """An explicit stencil on a grid sharded in two dimensions, ten steps."""
    draw = Draw("heat_equation")

    def run(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            padded = jnp.pad(u, 1)
            around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
            return u + 0.1 * (around - 4 * u)

        return jax.lax.fori_loop(0, 10, step, u)

    sharded = P("rows", "columns")
    return Model("heat_equation", run, (draw.normal(32, 64),), {"rows": 4, "columns": 2}, (sharded,), sharded)


@model
def game_of_life() -> Model:
    """A periodic stencil by rolls."""
    draw = Draw("game_of_life")

    def step(cells: Any) -> Any:
        offsets = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        count = sum(jnp.roll(cells, offset, (0, 1)) for offset in offsets)
        return ((count == 3) | ((cells == 1) & (count == 2))).astype(jnp.int32)

    sharded = P("rows", "columns")
    return Model(
        "game_of_life",
        step,
        (draw.integers(2, (32, 64)),),
        {"rows": 4, "columns": 2},
        (sharded,),
        sharded,
        unlike_xla="each roll brings its rows on its own",
    )


@model
def n_body() -> Model:
    """Forces between sharded bodies."""
    draw = Draw("n_body")

    def step(position: Any, velocity: Any, mass: Any) -> Any:
        apart = position[None] - position[:, None]
        force = apart / (jnp.sum(apart**2, -1, keepdims=True) + 0.1) ** 1.5 * mass[None, :, None]
        velocity = velocity + 0.01 * force.sum(axis=1)
        return position + 0.01 * velocity, velocity

    arguments = (draw.normal(64, 3), draw.normal(64, 3), abs(draw.normal(64)))
    return Model("n_body", step, arguments, _BATCH, (P("data"),) * 3, P("data"), 1e-3)


@model
def quantized_matmul() -> Model:
    """int8 operands, accumulated in int32, with scales of rows and columns."""
    draw = Draw("quantized_matmul")

    def run(x: Any, weight: Any, scales: Any) -> Any:
        limit = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127
        quantized = jnp.round(x / limit).astype(jnp.int8)
        product = jax.lax.dot(quantized, weight, preferred_element_type=jnp.int32)
        return product.astype(jnp.float32) * limit * scales

    weight = (draw.integers(255, (32, 64)) - 127).astype("int8")
    arguments = (draw.normal(16, 32), weight, abs(draw.normal(64)))
    specs = (P("data", None), P(None, "model"), P("model"))
    return Model("quantized_matmul", run, arguments, {"data": 2, "model": 4}, specs, P("data", "model"), 1e-3)


@model
def narrow_float_matmul() -> Model:
    """f8E4M3FN operands, accumulated in f32."""
    draw = Draw("narrow_float_matmul")

    def run(x: Any, weight: Any) -> Any:
        low = x.astype(jnp.float8_e4m3fn).astype(jnp.float32), weight.astype(jnp.float8_e4m3fn).astype(jnp.float32)
        return low[0] @ low[1]

    arguments = (draw.normal(16, 32), draw.normal(32, 64))
    specs = (P("data", None), P(None, "model"))
    return Model(
        "narrow_float_matmul",
        run,
        arguments,
        {"data": 2, "model": 4},
        specs,
        P("data", "model"),
        1e-3,
    )


@model
def monte_carlo() -> Model:
    """An estimate by random numbers that are drawn sharded."""

    def estimate(seed: Any) -> Any:
        key = jax.random.wrap_key_data(seed)
        points = jax.lax.with_sharding_constraint(jax.random.uniform(key, (4096, 2)), P("data"))
        return 4 * jnp.mean((points**2).sum(-1) < 1)

    seed = jax.device_get(jax.random.key_data(jax.random.key(1)))
    return Model("monte_carlo", estimate, (seed,), _BATCH, (P(),), P())


@model
def special_functions() -> Model:
    """Functions that JAX lowers to CHLO."""
    draw = Draw("special_functions")

    def run(x: Any) -> Any:
        found = [jax.scipy.special.erf(x), jnp.tan(x), jax.scipy.special.gammaln(jnp.abs(x) + 1), jnp.square(x)]
        found += [jax.scipy.special.erfinv(jnp.tanh(x)), jnp.arcsinh(x), jnp.sinh(x), jax.scipy.special.digamma(x + 9)]
        return sum(found)

    return Model("special_functions", run, (draw.normal(64, 16),), _BATCH, (P("data"),), P("data"), 1e-3)


@model
def histogram() -> Model:
    """Counts of sharded values, and quantiles of columns."""
    draw = Draw("histogram")

    def run(x: Any) -> Any:
        bins = jnp.clip(((x + 3) * 4).astype(jnp.int32), 0, 23)
        counts = jnp.zeros(24, jnp.int32).at[bins.ravel()].add(1)
        return counts, jnp.quantile(x, jnp.array([0.1, 0.5, 0.9]), axis=1)

    return Model("histogram", run, (draw.normal(64, 32),), _BATCH, (P("data"),), (P(), P(None, "data")), 1e-3)


@model
def complex_propagation() -> Model:
    """Products of complex matrices, sharded by batch and column."""
    draw = Draw("complex_propagation")

    def run(a: Any, b: Any) -> Any:
        state = (a + 1j * b).astype(jnp.complex64)
        return jnp.abs(jnp.einsum("bij,bjk->bik", state, jnp.conj(state)))

    sharded = P("data", None, "model")
    arguments = (draw.normal(4, 16, 16), draw.normal(4, 16, 16))
    return Model("complex_propagation", run, arguments, {"data": 2, "model": 4}, (sharded,) * 2, sharded, 1e-3)


@model
def conjugate_gradient() -> Model:
    """A while loop whose condition depends on a sharded residual."""
    draw = Draw("conjugate_gradient")
    half = draw.normal(64, 64, scale=0.1)

    def solve(a: Any, b: Any) -> Any:
        def body(state: Any) -> Any:
            x, r, p, norm = state
            ap = a @ p
            alpha = norm / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            new = r @ r
            return x, r, r + new / norm * p, new

        start = (jnp.zeros_like(b), b, b, b @ b)
        return jax.lax.while_loop(lambda state: state[3] > 1e-6, body, start)[0]

    matrix = half @ half.T + jax.device_get(jnp.eye(64))
    return Model("conjugate_gradient", solve, (matrix, draw.normal(64)), _BATCH, (P("data"), P()), P(), 1e-2)
