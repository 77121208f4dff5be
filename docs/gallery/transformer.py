"""A block of a transformer with tensor parallelism."""

import jax
import jax.numpy as jnp

import mlir_shard as ms
from mlir_shard import P

BATCH, LENGTH, WIDTH, HEADS = 4, 32, 64, 8


def normalized(x):
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-5)


def block(params, x):
    heads = jnp.einsum("bld,tdhk->tbhlk", normalized(x), params["qkv"])
    query, key, value = heads
    scores = jax.nn.softmax(jnp.einsum("bhlk,bhmk->bhlm", query, key) / 8.0)
    x = x + jnp.einsum("bhlm,bhmk,hkd->bld", scores, value, params["out"])
    return x + jax.nn.gelu(normalized(x) @ params["up"]) @ params["down"]


shape = jax.ShapeDtypeStruct
params = {
    "qkv": shape((3, WIDTH, HEADS, WIDTH // HEADS), jnp.float32),
    "out": shape((HEADS, WIDTH // HEADS, WIDTH), jnp.float32),
    "up": shape((WIDTH, 4 * WIDTH), jnp.float32),
    "down": shape((4 * WIDTH, WIDTH), jnp.float32),
}
specs = {
    "qkv": P(None, None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}
program = ms.from_jax(
    block,
    params,
    shape((BATCH, LENGTH, WIDTH), jnp.float32),
    mesh=ms.Mesh({"data": 2, "model": 4}),
    in_shardings=(specs, P("data")),
)
