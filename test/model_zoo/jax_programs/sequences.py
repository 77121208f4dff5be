# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent and state-space models, and decoding of sequences."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model

GRID = {"data": 2, "model": 4}


@model
def lstm() -> Model:
    """The gradient of an LSTM over a sequence, hidden units sharded."""
    draw = Draw("lstm")
    width, hidden = 16, 32
    weights = {"input": draw.normal(width, 4, hidden, scale=0.2), "hidden": draw.normal(hidden, 4, hidden, scale=0.2)}

    def loss(weights: Any, x: Any) -> Any:
        def cell(carry: Any, at: Any) -> Any:
            h, c = carry
            gates = jnp.einsum("bd,dgh->bgh", at, weights["input"]) + jnp.einsum("bd,dgh->bgh", h, weights["hidden"])
            i, f, g, o = (gates[:, number] for number in range(4))
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((x.shape[0], hidden))
        _, outputs = jax.lax.scan(cell, (start, start), jnp.swapaxes(x, 0, 1))
        return jnp.mean(outputs**2)

    specs = {"input": P(None, None, "model"), "hidden": P(None, None, "model")}
    arguments = (weights, draw.normal(8, 12, width))
    return Model("lstm", jax.grad(loss), arguments, GRID, (specs, P("data")), specs, 1e-3)


@model
def bidirectional_gru() -> Model:
    """Two recurrences, one of the reversed sequence."""
    draw = Draw("bidirectional_gru")
    width = 16
    weights = [{"x": draw.weight(width, width), "h": draw.weight(width, width)} for _ in range(2)]

    def run(weights: Any, x: Any) -> Any:
        def cell(h: Any, at: Any) -> Any:
            z = jax.nn.sigmoid(at @ weights["x"] + h @ weights["h"])
            h = (1 - z) * h + z * jnp.tanh(at @ weights["x"])
            return h, h

        return jax.lax.scan(cell, jnp.zeros((x.shape[1], width)), x)[1]

    def forward(weights: Any, x: Any) -> Any:
        return jnp.concatenate([run(weights[0], x), run(weights[1], x[::-1])[::-1]], axis=-1)

    batch = P(None, "data")
    return Model("bidirectional_gru", forward, (weights, draw.normal(8, 16, width)), {"data": 8}, (P(), batch), batch)


@model
def selective_state_space() -> Model:
    """A Mamba layer by an associative scan along an unsharded sequence."""
    draw = Draw("selective_state_space")
    width, states = 32, 4
    weights = {
        "in": draw.weight(16, width),
        "rate": draw.weight(width, width),
        "write": draw.weight(16, states),
        "read": draw.weight(16, states),
        "decay": draw.normal(width, states) * 0.1 - 1,
        "out": draw.weight(width, 16),
    }

    def forward(weights: Any, x: Any) -> Any:
        u = jax.nn.silu(x @ weights["in"])
        rate = jax.nn.softplus(u @ weights["rate"])
        decay = jnp.exp(rate[..., None] * weights["decay"])
        written = (rate * u)[..., None] * (x @ weights["write"])[:, :, None, :]

        def combine(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, state = jax.lax.associative_scan(combine, (decay, written), axis=1)
        return jnp.einsum("bsdn,bsn->bsd", state, x @ weights["read"]) @ weights["out"]

    specs = {
        "in": P(None, "model"),
        "rate": P(None, "model"),
        "write": P(),
        "read": P(),
        "decay": P("model", None),
        "out": P("model", None),
    }
    arguments = (weights, draw.normal(4, 16, 16))
    return Model("selective_state_space", forward, arguments, GRID, (specs, P("data")), P("data"), 1e-3)


@model
def linear_attention() -> Model:
    """Cumulative sums along a sharded sequence."""
    draw = Draw("linear_attention")

    def forward(query: Any, key: Any, value: Any) -> Any:
        state = jnp.cumsum(jnp.einsum("bsk,bsv->bskv", key, value), axis=1)
        return jnp.einsum("bsk,bskv->bsv", query, state)

    sequence = P(None, "sequence")
    arguments = tuple(draw.normal(2, 64, 8) for _ in range(3))
    return Model("linear_attention", forward, arguments, {"sequence": 8}, (sequence,) * 3, sequence, 1e-3)


@model
def beam_search_step() -> Model:
    """The best continuations of each beam, and the beams of these continuations."""
    draw = Draw("beam_search_step")

    def step(scores: Any, logits: Any, tokens: Any) -> Any:
        beams, vocabulary = logits.shape[1:]
        total = scores[..., None] + jax.nn.log_softmax(logits)
        best, index = jax.lax.top_k(total.reshape(total.shape[0], -1), beams)
        parents = index // vocabulary
        chosen = jnp.take_along_axis(tokens, parents[..., None], axis=1)
        return best, jnp.concatenate([chosen, (index % vocabulary)[..., None].astype(tokens.dtype)], axis=-1)

    arguments = (draw.normal(8, 4), draw.normal(8, 4, 32), draw.integers(32, (8, 4, 6)))
    return Model("beam_search_step", step, arguments, {"data": 8}, (P("data"),) * 3, P("data"))


@model
def nucleus_sampling() -> Model:
    """Sorted probabilities, their cumulative sum, and a draw from the remaining ones."""
    draw = Draw("nucleus_sampling")

    def sample(logits: Any, noise: Any) -> Any:
        order = jnp.argsort(-logits, axis=-1)
        ranked = jnp.take_along_axis(logits, order, axis=-1)
        probabilities = jax.nn.softmax(ranked)
        kept = jnp.cumsum(probabilities, axis=-1) - probabilities < 0.9
        picked = jnp.argmax(jnp.where(kept, ranked, -jnp.inf) + noise, axis=-1)
        return jnp.take_along_axis(order, picked[:, None], axis=-1)

    batch = P("data")
    return Model(
        "nucleus_sampling", sample, (draw.normal(16, 64), draw.normal(16, 64)), {"data": 8}, (batch, batch), batch
    )


@model
def causal_convolutions() -> Model:
    """Dilated causal convolutions along a sharded sequence (WaveNet)."""
    draw = Draw("causal_convolutions")
    kernels = [draw.weight(2, 8, 8) for _ in range(3)]

    def forward(kernels: Any, x: Any) -> Any:
        for number, kernel in enumerate(kernels):
            dilation = 2**number
            hidden = jax.lax.conv_general_dilated(
                x, kernel, (1,), [(dilation, 0)], rhs_dilation=(dilation,), dimension_numbers=("NWC", "WIO", "NWC")
            )
            x = x + jnp.tanh(hidden)
        return x

    sequence = P(None, "sequence")
    arguments = (kernels, draw.normal(2, 128, 8))
    return Model("causal_convolutions", forward, arguments, {"sequence": 8}, (P(), sequence), sequence)
