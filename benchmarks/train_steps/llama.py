# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Llama 3 of 8 billion weights: data parallel, fully sharded data parallel, and tensor parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train_steps.step import Axes, Model, Weight, constrained, cross_entropy, normalized

MESH = {"data": 8, "fsdp": 8, "model": 8}
BATCH = ("data", "fsdp")


@dataclass(frozen=True, slots=True)
class LlamaSizes:
    """The sizes of the model and of a step's input."""

    layers: int = 32
    width: int = 4096
    groups: int = 8
    heads_per_group: int = 4
    head: int = 128
    hidden: int = 14336
    vocabulary: int = 128256
    batch: int = 64
    length: int = 4096


def llama(sizes: LlamaSizes, *, scan: bool = False) -> Model:
    """Returns the model; each layer is recomputed for its gradient. With `scan` all layers are one loop."""
    width, groups, per_group, head = sizes.width, sizes.groups, sizes.heads_per_group, sizes.head
    layer = {
        "norm_attention": Weight((width,), (None,)),
        "query": Weight((width, groups, per_group, head), ("fsdp", "model", None, None)),
        "key": Weight((width, groups, head), ("fsdp", "model", None)),
        "value": Weight((width, groups, head), ("fsdp", "model", None)),
        "out": Weight((groups, per_group, head, width), ("model", None, None, "fsdp")),
        "norm_mlp": Weight((width,), (None,)),
        "gate": Weight((width, sizes.hidden), ("fsdp", "model")),
        "up": Weight((width, sizes.hidden), ("fsdp", "model")),
        "down": Weight((sizes.hidden, width), ("model", "fsdp")),
    }
    layers: Any = [layer] * sizes.layers
    if scan:
        layers = {name: Weight((sizes.layers, *one.shape), (None, *one.axes)) for name, one in layer.items()}
    weights = {
        "embedding": Weight((sizes.vocabulary, width), ("model", "fsdp")),
        "layers": layers,
        "norm": Weight((width,), (None,)),
        "head": Weight((width, sizes.vocabulary), ("fsdp", "model")),
    }

    def loss(weights: Any, tokens: Any) -> Any:
        import jax
        import jax.numpy as jnp

        inputs, labels = tokens
        x = constrained(weights["embedding"][inputs], BATCH, None, None)
        block = jax.checkpoint(decoder)
        if scan:
            x, _ = jax.lax.scan(lambda x, p: (block(p, x), None), x, weights["layers"])
        else:
            for p in weights["layers"]:
                x = block(p, x)
        logits = jnp.einsum("bsd,dv->bsv", normalized(x, weights["norm"]), weights["head"])
        return cross_entropy(constrained(logits, BATCH, None, "model"), labels)

    return Model(MESH, weights, loss, Weight((2, sizes.batch, sizes.length), (None, BATCH, None)))


def decoder(p: Any, x: Any) -> Any:
    """Computes one layer on activations of batch, length and width."""
    import jax
    import jax.numpy as jnp

    x = x + attention(p, normalized(x, p["norm_attention"]))
    h = normalized(x, p["norm_mlp"])
    h = jax.nn.silu(jnp.einsum("bsd,df->bsf", h, p["gate"])) * jnp.einsum("bsd,df->bsf", h, p["up"])
    return constrained(x + jnp.einsum("bsf,fd->bsd", h, p["down"]), BATCH, None, None)


def attention(p: Any, h: Any, keys: Axes | None = None) -> Any:
    """Computes causal attention with grouped queries and rotary positions; `keys`: the axes of keys and values."""
    import jax
    import jax.numpy as jnp

    query = rotated(jnp.einsum("bsd,dghk->bsghk", h, p["query"]))
    key = rotated(jnp.einsum("bsd,dgk->bsgk", h, p["key"]))
    value = jnp.einsum("bsd,dgk->bsgk", h, p["value"])
    if keys is not None:
        key, value = constrained(key, *keys), constrained(value, *keys)
    scores = jnp.einsum("bsghk,btgk->bghst", query, key).astype(jnp.float32) * query.shape[-1] ** -0.5
    rows, columns = (jax.lax.broadcasted_iota(jnp.int32, scores.shape[-2:], dim) for dim in (0, 1))
    weights = jax.nn.softmax(jnp.where(rows >= columns, scores, -1e30)).astype(h.dtype)
    mixed = jnp.einsum("bghst,btgk->bsghk", weights, value)
    return jnp.einsum("bsghk,ghkd->bsd", mixed, p["out"])


def rotated(x: Any) -> Any:
    """Applies rotary positions along dimension 1."""
    import jax
    import jax.numpy as jnp

    half = x.shape[-1] // 2
    shape = (x.shape[1], *(1,) * (x.ndim - 3), half)
    places = jax.lax.broadcasted_iota(jnp.float32, shape, 0)
    angles = places * 500_000.0 ** -(jax.lax.broadcasted_iota(jnp.float32, shape, len(shape) - 1) / half)
    sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)
    one, other = x[..., :half], x[..., half:]
    return jnp.concatenate((one * cosine - other * sine, other * cosine + one * sine), -1)
