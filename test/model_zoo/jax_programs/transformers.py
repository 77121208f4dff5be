# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transformers: training, decoding, experts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model

WIDTH, HEADS, HIDDEN, VOCABULARY = 32, 4, 64, 48
GRID = {"data": 2, "model": 4}


def _layer(draw: Draw) -> dict[str, Any]:
    return {
        "norm": draw.normal(WIDTH) * 0.1 + 1,
        "qkv": draw.weight(WIDTH, 3 * WIDTH).reshape(WIDTH, 3, HEADS, WIDTH // HEADS),
        "out": draw.weight(WIDTH, WIDTH).reshape(HEADS, WIDTH // HEADS, WIDTH),
        "up": draw.weight(WIDTH, HIDDEN),
        "down": draw.weight(HIDDEN, WIDTH),
    }


_TENSOR_PARALLEL = {
    "norm": P(),
    "qkv": P(None, None, "model", None),
    "out": P("model", None, None),
    "up": P(None, "model"),
    "down": P("model", None),
}


def _normalized(x: Any, weight: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * weight


def _rotated(x: Any) -> Any:
    """Applies rotary position embedding to (batch, sequence, heads, width of a head)."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def _attention(x: Any, layer: Any) -> Any:
    query, key, value = jnp.einsum("bsd,dthk->tbshk", x, layer["qkv"])
    query, key = _rotated(query), _rotated(key)
    scores = jnp.einsum("bqhk,bshk->bhqs", query, key) / key.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqs,bshk,hkd->bqd", weights, value, layer["out"])


def _block(x: Any, layer: Any) -> Any:
    x = x + _attention(_normalized(x, layer["norm"]), layer)
    return x + jax.nn.silu(_normalized(x, layer["norm"]) @ layer["up"]) @ layer["down"]


def _language_loss(parameters: Any, tokens: Any, targets: Any) -> Any:
    x = parameters["embedding"][tokens]
    for layer in parameters["layers"]:
        x = _block(x, layer)
    logits = x @ parameters["head"]
    labels = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -jnp.mean(labels)


def _adam(parameters: Any, gradient: Any, state: Any) -> tuple[Any, Any]:
    """A step of AdamW, with the bias correction of the first step."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], gradient)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state[1], gradient)
    updated = jax.tree.map(
        lambda p, m, v: p - 1e-2 * (m / 0.1 / (jnp.sqrt(v / 0.01) + 1e-3) + 0.01 * p), parameters, first, second
    )
    return updated, (first, second)


def _language_model(draw: Draw, layers: int = 2) -> Any:
    return {
        "embedding": draw.normal(VOCABULARY, WIDTH),
        "layers": [_layer(draw) for _ in range(layers)],
        "head": draw.weight(WIDTH, VOCABULARY),
    }


def _zeros_like(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf * 0, tree)


@model
def decoder_adamw() -> Model:
    """A train step with tensor and data parallelism."""
    draw = Draw("decoder_adamw")
    parameters = _language_model(draw)
    specs = {"embedding": P(), "layers": [_TENSOR_PARALLEL] * 2, "head": P(None, "model")}

    def step(parameters: Any, state: Any, tokens: Any, targets: Any) -> Any:
        loss, gradient = jax.value_and_grad(_language_loss)(parameters, tokens, targets)
        return *_adam(parameters, gradient, state), loss

    tokens = draw.integers(VOCABULARY, (4, 16))
    state = _zeros_like(parameters), _zeros_like(parameters)
    return Model(
        "decoder_adamw",
        step,
        (parameters, state, tokens, tokens[:, ::-1].copy()),
        GRID,
        (specs, (specs, specs), P("data", None), P("data", None)),
        (specs, (specs, specs), P()),
        2e-2,
    )


@model
def fsdp_decoder() -> Model:
    """A train step whose weights are sharded along the axis of the batch."""
    draw = Draw("fsdp_decoder")
    parameters = _language_model(draw)
    layer = {
        "norm": P(),
        "qkv": P("data", None, None, None),
        "out": P(None, None, "data"),
        "up": P("data", None),
        "down": P(None, "data"),
    }
    specs = {"embedding": P(None, "data"), "layers": [layer] * 2, "head": P("data", None)}

    def step(parameters: Any, tokens: Any, targets: Any) -> Any:
        loss, gradient = jax.value_and_grad(_language_loss)(parameters, tokens, targets)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), loss

    tokens = draw.integers(VOCABULARY, (8, 16))
    batch = P("data", None)
    arguments = (parameters, tokens, tokens[:, ::-1].copy())
    return Model("fsdp_decoder", step, arguments, {"data": 8}, (specs, batch, batch), (specs, P()), 2e-2)


@model
def llama_block() -> Model:
    """Attention with rotary embedding and a gated perceptron, forward: two all-reduces."""
    draw = Draw("llama_block")
    layer = _layer(draw) | {"gate": draw.weight(WIDTH, HIDDEN)}

    def forward(layer: Any, x: Any) -> Any:
        x = x + _attention(_normalized(x, layer["norm"]), layer)
        inner = _normalized(x, layer["norm"])
        return x + (jax.nn.silu(inner @ layer["gate"]) * (inner @ layer["up"])) @ layer["down"]

    specs = _TENSOR_PARALLEL | {"gate": P(None, "model")}
    x = draw.normal(4, 16, WIDTH)
    return Model("llama_block", forward, (layer, x), GRID, (specs, P("data")), P("data"))


@model
def scanned_remat_decoder() -> Model:
    """A train step with its layers in one scan of a rematerialized function."""
    draw = Draw("scanned_remat_decoder")
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(_layer(draw) for _ in range(3)))
    specs = jax.tree.map(lambda spec: P(None, *spec), _TENSOR_PARALLEL, is_leaf=lambda one: isinstance(one, P))

    def loss(layers: Any, x: Any) -> Any:
        body = jax.checkpoint(_block)
        last, _ = jax.lax.scan(lambda x, layer: (body(x, layer), None), x, layers)
        return jnp.mean(last**2)

    def step(layers: Any, x: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, layers, jax.grad(loss)(layers, x))

    arguments = (jax.tree.map(jax.device_get, stacked), draw.normal(4, 16, WIDTH))
    return Model("scanned_remat_decoder", step, arguments, GRID, (specs, P("data")), specs, 1e-2)


@model
def kv_cache_decoding() -> Model:
    """One step of decoding, which writes keys and values at a position that is an argument."""
    draw = Draw("kv_cache_decoding")

    def decode(layer: Any, keys: Any, values: Any, x: Any, position: Any) -> Any:
        query, key, value = jnp.einsum("bd,dthk->tbhk", x, layer["qkv"])
        keys = jax.lax.dynamic_update_slice_in_dim(keys, key[:, None], position, axis=1)
        values = jax.lax.dynamic_update_slice_in_dim(values, value[:, None], position, axis=1)
        scores = jnp.einsum("bhk,bshk->bhs", query, keys)
        scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -1e9)
        attended = jnp.einsum("bhs,bshk,hkd->bd", jax.nn.softmax(scores), values, layer["out"])
        return attended, keys, values

    cache = P("data", None, "model", None)
    shape = (4, 32, HEADS, WIDTH // HEADS)
    arguments = (_layer(draw), draw.normal(*shape), draw.normal(*shape), draw.normal(4, WIDTH), jnp.int32(7))
    return Model(
        "kv_cache_decoding",
        decode,
        arguments,
        GRID,
        (_TENSOR_PARALLEL, cache, cache, P("data", None), P()),
        (P("data", None), cache, cache),
    )


@model
def greedy_generation() -> Model:
    """A while loop that appends the most likely token."""
    draw = Draw("greedy_generation")
    parameters = _language_model(draw, layers=1)
    specs = {"embedding": P(), "layers": [_TENSOR_PARALLEL], "head": P(None, "model")}

    def generate(parameters: Any, tokens: Any) -> Any:
        def body(at: Any, tokens: Any) -> Any:
            x = _block(parameters["embedding"][tokens], parameters["layers"][0])
            logits = jax.lax.dynamic_slice_in_dim(x, at - 1, 1, axis=1)[:, 0] @ parameters["head"]
            token = jnp.argmax(logits, axis=-1).astype(tokens.dtype)
            return jax.lax.dynamic_update_slice_in_dim(tokens, token[:, None], at, axis=1)

        return jax.lax.fori_loop(4, 8, body, tokens)

    tokens = draw.integers(VOCABULARY, (4, 8))
    return Model("greedy_generation", generate, (parameters, tokens), GRID, (specs, P("data")), P("data"))


@model
def mixture_of_experts() -> Model:
    """A layer of experts with its gradient, in which one-hot dispatch sends each token to two experts."""
    draw = Draw("mixture_of_experts")
    experts = 8

    def layer(weights: Any, x: Any) -> Any:
        probabilities = jax.nn.softmax(x @ weights["router"])
        gates, chosen = jax.lax.top_k(probabilities, 2)
        dispatch = jnp.einsum("bsk,bske->bse", gates, jax.nn.one_hot(chosen, experts))
        inner = jax.nn.gelu(jnp.einsum("bsd,edf->ebsf", x, weights["up"]))
        return jnp.einsum("ebsf,efd,bse->bsd", inner, weights["down"], dispatch)

    def step(weights: Any, x: Any) -> Any:
        gradient = jax.grad(lambda weights: jnp.mean(layer(weights, x) ** 2))(weights)
        return jax.tree.map(lambda p, g: p - 0.1 * g, weights, gradient)

    weights = {
        "router": draw.weight(WIDTH, experts),
        "up": draw.normal(experts, WIDTH, HIDDEN, scale=0.2),
        "down": draw.normal(experts, HIDDEN, WIDTH, scale=0.1),
    }
    specs = {"router": P(), "up": P("expert"), "down": P("expert")}
    mesh = {"data": 2, "expert": 4}
    return Model("mixture_of_experts", step, (weights, draw.normal(4, 8, WIDTH)), mesh, (specs, P("data")), specs, 1e-2)


@model
def mixed_precision_step() -> Model:
    """Forward and gradient in bf16 of f32 weights."""
    draw = Draw("mixed_precision_step")
    weights = {"up": draw.weight(WIDTH, HIDDEN), "down": draw.weight(HIDDEN, WIDTH)}

    def loss(weights: Any, x: Any) -> Any:
        low = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), weights)
        y = jax.nn.gelu(x.astype(jnp.bfloat16) @ low["up"]) @ low["down"]
        return jnp.mean(jnp.square(y.astype(jnp.float32)))

    def step(weights: Any, x: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, weights, jax.grad(loss)(weights, x))

    specs = {"up": P(None, "model"), "down": P("model", None)}
    arguments = (weights, draw.normal(16, WIDTH))
    return Model("mixed_precision_step", step, arguments, GRID, (specs, P("data")), specs, 5e-2)


@model
def half_precision_block() -> Model:
    """A block of a transformer in f16."""
    draw = Draw("half_precision_block")
    layer = jax.tree.map(lambda leaf: leaf.astype("float16"), _layer(draw))
    x = draw.normal(4, 16, WIDTH).astype("float16")
    return Model(
        "half_precision_block",
        lambda x, layer: _block(x, layer),
        (x, layer),
        GRID,
        (P("data"), _TENSOR_PARALLEL),
        P("data"),
        5e-2,
    )


@model
def dropout_training() -> Model:
    """A gradient with dropout, whose random bits come from a key that is an argument."""
    draw = Draw("dropout_training")
    weights = {"up": draw.weight(WIDTH, HIDDEN), "down": draw.weight(HIDDEN, WIDTH)}

    def loss(weights: Any, x: Any, seed: Any) -> Any:
        hidden = jax.nn.relu(x @ weights["up"])
        kept = jax.random.bernoulli(jax.random.wrap_key_data(seed), 0.9, hidden.shape)
        return jnp.mean((jnp.where(kept, hidden / 0.9, 0) @ weights["down"]) ** 2)

    specs = {"up": P(None, "model"), "down": P("model", None)}
    arguments = (weights, draw.normal(16, WIDTH), jax.device_get(jax.random.key_data(jax.random.key(3))))
    return Model("dropout_training", jax.grad(loss), arguments, GRID, (specs, P("data"), P()), specs, 1e-3)


@model
def vision_transformer() -> Model:
    """Patches by a strided convolution, a block, a classifier, with its gradient."""
    draw = Draw("vision_transformer")
    parameters = {"patch": draw.weight(4, 4, 3, WIDTH), "layer": _layer(draw), "head": draw.weight(WIDTH, 10)}
    specs = {"patch": P(), "layer": _TENSOR_PARALLEL, "head": P()}

    def loss(parameters: Any, images: Any, labels: Any) -> Any:
        dims = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(images, parameters["patch"], (4, 4), "VALID", dimension_numbers=dims)
        x = _block(x.reshape(x.shape[0], -1, WIDTH), parameters["layer"]).mean(axis=1)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(x @ parameters["head"]), labels[:, None], axis=1)
        return -chosen.mean()

    arguments = (parameters, draw.normal(8, 16, 16, 3), draw.integers(10, (8,)))
    return Model("vision_transformer", jax.grad(loss), arguments, GRID, (specs, P("data"), P("data")), specs, 1e-2)


@model
def cross_attention() -> Model:
    """Queries attend to another sequence, with grouped heads and a bias."""
    draw = Draw("cross_attention")

    def attend(query: Any, key: Any, value: Any, bias: Any) -> Any:
        return jax.nn.dot_product_attention(query, key, value, bias=bias)

    arguments = (draw.normal(4, 8, 8, 8), draw.normal(4, 16, 4, 8), draw.normal(4, 16, 4, 8), draw.normal(1, 8, 8, 16))
    heads = P("data", None, "model", None)
    specs = (heads, heads, heads, P(None, "model", None, None))
    return Model("cross_attention", attend, arguments, GRID, specs, heads)
