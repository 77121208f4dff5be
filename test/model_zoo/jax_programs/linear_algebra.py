# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dense linear algebra and transforms, most of it batched."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model

_BATCH = {"data": 8}


def _positive_definite(draw: Draw, batch: int, size: int) -> Any:
    half = draw.normal(batch, size, size)
    return half @ half.swapaxes(1, 2) + 4 * jax.device_get(jnp.eye(size))


def _batched(name: str, function: Any, *arguments: Any, tolerance: float = 1e-3) -> Model:
    return Model(name, function, arguments, _BATCH, (P("data"),) * len(arguments), P("data"), tolerance)


@model
def cholesky_solve() -> Model:
    """A factorization and two triangular solves."""
    draw = Draw("cholesky_solve")

    def solve(a: Any, b: Any) -> Any:
        return jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), b)

    return _batched("cholesky_solve", jax.vmap(solve), _positive_definite(draw, 8, 6), draw.normal(8, 6, 2))


@model
def qr_factors() -> Model:
    """The product of the factors, which is unique."""
    return _batched("qr_factors", lambda a: jnp.matmul(*jnp.linalg.qr(a)), Draw("qr_factors").normal(8, 6, 4))


@model
def eigenvalues() -> Model:
    """Eigenvalues of symmetric matrices."""
    return _batched("eigenvalues", jnp.linalg.eigvalsh, _positive_definite(Draw("eigenvalues"), 8, 6))


@model
def lu_solve() -> Model:
    """Solutions of linear systems by LU factorization."""
    draw = Draw("lu_solve")
    return _batched("lu_solve", jnp.linalg.solve, _positive_definite(draw, 8, 6), draw.normal(8, 6, 2))


@model
def singular_values() -> Model:
    """Singular values."""
    return _batched("singular_values", lambda a: jnp.linalg.svd(a, compute_uv=False), Draw("singular").normal(8, 6, 4))


@model
def determinants() -> Model:
    """Signs and logarithms of determinants."""
    return _batched("determinants", lambda a: jnp.linalg.slogdet(a), Draw("determinants").normal(8, 5, 5))


@model
def newton_schulz() -> Model:
    """The iteration of the Muon optimizer on a sharded matrix."""
    draw = Draw("newton_schulz")

    def orthogonalized(g: Any) -> Any:
        x = g / jnp.linalg.norm(g)
        for _ in range(3):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x

    sharded = P("data", "model")
    mesh = {"data": 2, "model": 4}
    return Model("newton_schulz", orthogonalized, (draw.normal(32, 64),), mesh, (sharded,), sharded, 1e-2)


@model
def power_iteration() -> Model:
    """The largest eigenvalue of a matrix sharded by rows."""
    draw = Draw("power_iteration")

    def largest(a: Any, x: Any) -> Any:
        def body(_: Any, x: Any) -> Any:
            y = a @ x
            return y / jnp.linalg.norm(y)

        x = jax.lax.fori_loop(0, 10, body, x)
        return x @ (a @ x)

    matrix = _positive_definite(draw, 1, 64)[0]
    return Model("power_iteration", largest, (matrix, draw.normal(64)), _BATCH, (P("data"), P()), P(), 1e-3)


@model
def fourier_filter() -> Model:
    """A filter in the frequencies of images, sharded by batch."""
    draw = Draw("fourier_filter")

    def filtered(images: Any, gains: Any) -> Any:
        return jnp.fft.irfft2(jnp.fft.rfft2(images) * gains, s=images.shape[1:])

    arguments = (draw.normal(8, 16, 16), draw.normal(16, 9))
    return Model("fourier_filter", filtered, arguments, _BATCH, (P("data"), P()), P("data"), 1e-3)


@model
def kalman_filter() -> Model:
    """Means and covariances of batched linear systems, by a scan over observations."""
    draw = Draw("kalman_filter")

    def run(transition: Any, observed: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            mean, covariance = carry
            mean, covariance = transition @ mean, transition @ covariance @ transition.T + jnp.eye(3)
            gain = covariance @ jnp.linalg.inv(covariance + jnp.eye(3))
            mean = mean + gain @ (y - mean)
            return (mean, covariance - gain @ covariance), mean

        return jax.lax.scan(step, (jnp.zeros(3), jnp.eye(3)), observed)[1]

    arguments = (draw.normal(3, 3) * 0.3, draw.normal(8, 10, 3))
    function = jax.vmap(run, in_axes=(None, 0))
    return Model("kalman_filter", function, arguments, _BATCH, (P(), P("data")), P("data"), 1e-3)


@model
def gaussian_process() -> Model:
    """The mean of a Gaussian process at sharded points."""
    draw = Draw("gaussian_process")

    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-jnp.sum((a[:, None] - b[None]) ** 2, -1))

    def predict(x: Any, y: Any, at: Any) -> Any:
        factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(x.shape[0]))
        return kernel(at, x) @ jax.scipy.linalg.cho_solve((factor, True), y)

    arguments = (draw.normal(16, 2), draw.normal(16), draw.normal(64, 2))
    return Model("gaussian_process", predict, arguments, _BATCH, (P(), P(), P("data")), P("data"), 1e-2)
