# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transformer in JAX, annotated for a mesh of data by model with 8 devices, for benchmarks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

DEVICES = 8


@dataclass(frozen=True)
class Sizes:
    """The sizes of a transformer; heads and hidden are sharded along model, the batch along data."""

    width: int = 256
    heads: int = 8
    hidden: int = 1024
    length: int = 128
    batch: int = 8


@dataclass(frozen=True)
class Transformer:
    """Functions of parameters, a list of dictionaries, and an input, with the shapes and shardings of both."""

    forward: Callable[..., Any]
    loss: Callable[..., Any]
    parameters: list[dict[str, Any]]
    shardings: list[dict[str, Any]]
    x: Any
    sharding: Any

    def lower(self, function: Callable[..., Any]) -> Any:
        """Returns the function lowered by JAX for the mesh."""
        import jax

        return jax.jit(function, in_shardings=(self.shardings, self.sharding)).lower(self.parameters, self.x)


def transformer(
    layers: int, sizes: Sizes | None = None, mesh_shape: tuple[int, int] = (2, 4), *, growing: bool = False
) -> Transformer:
    """Returns a transformer on a mesh of data by model. The first call in a process sets the number of JAX's devices.

    If `growing`, each layer is wider than the previous one, on a shorter sequence, so that no two have the same shapes.
    """
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    sizes = sizes or Sizes()
    heads, length, batch = sizes.heads, sizes.length, sizes.batch
    widths = [sizes.width + (heads * 2 * i if growing else 0) for i in range(layers)]
    mesh = Mesh(np.array(jax.devices()).reshape(mesh_shape), ("data", "model"))

    def sharding(*axes: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*axes))

    def normalized(x, gain, bias):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias

    def layer(p, x):
        if "widen" in p:
            x = x[:, :-1] @ p["widen"]
        length, width = x.shape[1:]
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

    def shapes(width, hidden, before):
        of_heads = ((width, heads, width // heads), sharding(None, "model", None))
        vectors = ("gain_attention", "bias_attention", "gain_mlp", "bias_mlp")
        return {
            **({"widen": ((before, width), sharding(None, None))} if growing and before else {}),
            **dict.fromkeys(("query", "key", "value"), of_heads),
            "out": ((heads, width // heads, width), sharding("model", None, None)),
            "up": ((width, hidden), sharding(None, "model")),
            "down": ((hidden, width), sharding("model", None)),
            **{name: ((width,), sharding(None)) for name in vectors},
        }

    hidden = sizes.hidden // sizes.width
    of_layers = [shapes(width, hidden * width, before) for width, before in zip(widths, [0, *widths], strict=False)]
    parameters = [
        {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, (shape, _) in one.items()} for one in of_layers
    ]
    shardings = [{name: one for name, (_, one) in layer.items()} for layer in of_layers]

    def forward(parameters, x):
        for p in parameters:
            x = layer(p, x)
        return x

    def loss(parameters, x):
        return (forward(parameters, x) ** 2).sum()

    x = jax.ShapeDtypeStruct((batch, length, sizes.width), jnp.float32)
    return Transformer(forward, loss, parameters, shardings, x, sharding("data", None, None))


def lowered_gradient(layers: int, devices: int = DEVICES, *, growing: bool = False) -> str:
    """Returns a module of about 320 operations a layer, as text; more devices make data and the batch larger."""
    data = devices // 4
    model = transformer(layers, Sizes(batch=4 * data), growing=growing)
    import jax

    text = model.lower(jax.grad(model.loss)).as_text()
    return text.replace('"data"=2', f'"data"={data}').replace('"data", size = 2', f'"data", size = {data}')
