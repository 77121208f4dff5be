# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of a transformer, as JAX lowers it to StableHLO and sdy: the module that benchmarks measure on."""

from __future__ import annotations

import os

DEVICES = 8


def lowered_gradient(layers: int) -> str:
    """The text of a module of about 320 operations a layer, annotated for a mesh of data=2 by model=4."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    width, heads, hidden, length, batch = 256, 8, 1024, 128, 8
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))

    def sharding(*axes: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    def normalized(x, gain, bias):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias

    def layer(p, x):
        h = normalized(x, p["gain_attention"], p["bias_attention"])
        query, key, value = (jnp.einsum("bsd,dhk->bshk", h, p[name]) for name in ("query", "key", "value"))
        scores = jnp.einsum("bshk,bthk->bhst", query, key) * (width // heads) ** -0.5
        causal = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
        mixed = jnp.einsum("bhst,bthk->bshk", weights, value)
        x = x + jnp.einsum("bshk,hkd->bsd", mixed, p["out"])
        h = jax.nn.gelu(normalized(x, p["gain_mlp"], p["bias_mlp"]) @ p["up"])
        h = jax.lax.with_sharding_constraint(h, sharding("data", None, "model"))
        return x + h @ p["down"]

    shapes = {
        "query": ((width, heads, width // heads), sharding(None, "model", None)),
        "key": ((width, heads, width // heads), sharding(None, "model", None)),
        "value": ((width, heads, width // heads), sharding(None, "model", None)),
        "out": ((heads, width // heads, width), sharding("model", None, None)),
        "up": ((width, hidden), sharding(None, "model")),
        "down": ((hidden, width), sharding("model", None)),
        **{name: ((width,), sharding(None)) for name in ("gain_attention", "bias_attention", "gain_mlp", "bias_mlp")},
    }
    parameters = [{name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, (shape, _) in shapes.items()}] * layers
    shardings = [{name: one for name, (_, one) in shapes.items()}] * layers

    def loss(parameters, x):
        for p in parameters:
            x = layer(p, x)
        return (x**2).sum()

    gradient = jax.jit(jax.grad(loss), in_shardings=(shardings, sharding("data", None, None)))
    return gradient.lower(parameters, jax.ShapeDtypeStruct((batch, length, width), jnp.float32)).as_text()
