# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with explicit collectives, by `shard_map`, and parallel schedules."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from model_zoo.program import Draw, Model, model


def _varying(tree: Any, axis: str) -> Any:
    """Returns the values with types that vary along an axis."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(tree, axis, to="varying")
    return jax.lax.pvary(tree, axis)


@model
def ring_attention() -> Model:
    """Blocks of keys and values are passed around a ring while queries stay."""
    draw = Draw("ring_attention")
    devices = 8

    def of_shard(query: Any, key: Any, value: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            key, value, total, weights, most = carry
            scores = jnp.einsum("qd,kd->qk", query, key)
            higher = jnp.maximum(most, scores.max(axis=-1))
            scaled = jnp.exp(scores - higher[:, None])
            old = jnp.exp(most - higher)
            total = total * old[:, None] + scaled @ value
            weights = weights * old + scaled.sum(axis=-1)
            ring = [(at, (at + 1) % devices) for at in range(devices)]
            key, value = (jax.lax.ppermute(one, "ring", ring) for one in (key, value))
            return (key, value, total, weights, higher), None

        start = (key, value, jnp.zeros_like(query), query[:, 0] * 0, query[:, 0] * 0 - 1e9)
        _, _, total, weights, _ = jax.lax.scan(body, start, None, length=devices)[0]
        return total / weights[:, None]

    sequence = P("ring")

    def attend(query: Any, key: Any, value: Any) -> Any:
        return jax.shard_map(of_shard, in_specs=(sequence,) * 3, out_specs=sequence)(query, key, value)

    arguments = tuple(draw.normal(64, 8) for _ in range(3))
    return Model(
        "ring_attention", attend, arguments, {"ring": devices}, (sequence,) * 3, sequence, 1e-3, names_devices=True
    )


@model
def pipelined_layers() -> Model:
    """A pipeline of stages, which pass microbatches to their successors."""
    draw = Draw("pipelined_layers")
    stages, microbatches = 8, 4

    def of_stage(weight: Any, x: Any) -> Any:
        stage = jax.lax.axis_index("stage")
        ring = [(at, (at + 1) % stages) for at in range(stages)]

        def body(at: Any, carry: Any) -> Any:
            state, outputs = carry
            fed = jnp.where(stage == 0, x[jnp.minimum(at, microbatches - 1)], state)
            made = jnp.tanh(fed @ weight[0])
            place = at - (stages - 1)
            outputs = jnp.where(
                (stage == stages - 1) & (place >= 0), outputs.at[jnp.maximum(place, 0)].set(made), outputs
            )
            return jax.lax.ppermute(made, "stage", ring), outputs

        start = _varying((jnp.zeros_like(x[0]), jnp.zeros_like(x)), "stage")
        outputs = jax.lax.fori_loop(0, microbatches + stages - 1, body, start)[1]
        return jax.lax.psum(jnp.where(stage == stages - 1, outputs, 0), "stage")

    def run(weights: Any, x: Any) -> Any:
        return jax.shard_map(of_stage, in_specs=(P("stage"), P()), out_specs=P())(weights, x)

    arguments = (draw.normal(stages, 16, 16, scale=0.25), draw.normal(microbatches, 4, 16))
    return Model(
        "pipelined_layers", run, arguments, {"stage": stages}, (P("stage"), P()), P(), 1e-3, names_devices=True
    )


@model
def expert_exchange() -> Model:
    """Tokens are exchanged with the devices of their experts by explicit all-to-alls."""
    draw = Draw("expert_exchange")

    def of_shard(weight: Any, x: Any) -> Any:
        sent = jax.lax.all_to_all(x, "expert", split_axis=0, concat_axis=1, tiled=True)
        made = jax.nn.relu(jnp.einsum("ecd,edf->ecf", sent, weight))
        return jax.lax.all_to_all(made, "expert", split_axis=1, concat_axis=0, tiled=True)

    def run(weight: Any, x: Any) -> Any:
        specs = (P("expert"), P(None, "expert"))
        return jax.shard_map(of_shard, in_specs=specs, out_specs=P(None, "expert"))(weight, x)

    arguments = (draw.normal(8, 16, 16, scale=0.25), draw.normal(8, 32, 16))
    tokens = P(None, "expert")
    return Model("expert_exchange", run, arguments, {"expert": 8}, (P("expert"), tokens), tokens, names_devices=True)


@model
def manual_data_parallel() -> Model:
    """A gradient inside `shard_map`, averaged by `psum`, with tensor parallelism left to the partitioner."""
    draw = Draw("manual_data_parallel")
    weights = {"up": draw.weight(16, 64), "down": draw.weight(64, 16)}

    def loss(weights: Any, x: Any) -> Any:
        return jnp.mean((jax.nn.gelu(x @ weights["up"]) @ weights["down"]) ** 2)

    def of_shard(weights: Any, x: Any) -> Any:
        varying = _varying(weights, "data")
        return jax.tree.map(lambda g: jax.lax.pmean(g, "data"), jax.grad(loss)(varying, x))

    def run(weights: Any, x: Any) -> Any:
        mapped = jax.shard_map(of_shard, in_specs=(P(), P("data")), out_specs=P(), axis_names={"data"})
        return mapped(weights, x)

    specs = {"up": P(None, "model"), "down": P("model", None)}
    mesh = {"data": 2, "model": 4}
    return Model(
        "manual_data_parallel",
        run,
        (weights, draw.normal(16, 16)),
        mesh,
        (specs, P("data")),
        specs,
        1e-3,
        names_devices=True,
    )


@model
def sequence_parallel_block() -> Model:
    """Megatron's sequence parallelism, by constraints between norms and matmuls."""
    draw = Draw("sequence_parallel_block")
    weights = {"up": draw.weight(32, 64), "down": draw.weight(64, 32)}

    def forward(weights: Any, x: Any) -> Any:
        constrained = jax.lax.with_sharding_constraint
        x = constrained(x, P("data", "model", None))
        normalized = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        hidden = jax.nn.gelu(constrained(normalized, P("data", None, None)) @ weights["up"])
        return x + constrained(hidden @ weights["down"], P("data", "model", None))

    specs = {"up": P(None, "model"), "down": P("model", None)}
    x = P("data", "model", None)
    mesh = {"data": 2, "model": 4}
    return Model("sequence_parallel_block", forward, (weights, draw.normal(4, 16, 32)), mesh, (specs, x), x, 1e-3)
