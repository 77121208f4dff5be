# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mixture of experts of the shapes of Mixtral 8x7B on five mesh axes: data, fsdp, sequence, tensor, expert parallel.

Each token goes to two experts with a capacity, as in GShard (arXiv:2006.16668). Each device routes its own tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train_steps.llama import attention
from train_steps.step import Model, Weight, constrained, cross_entropy, normalized

MESH = {"data": 4, "fsdp": 4, "seq": 2, "model": 8, "expert": 2}
BATCH = ("data", "fsdp", "expert")
# The axes of the batch if the experts are sharded along "expert".
OUTER = ("data", "fsdp")


@dataclass(frozen=True, slots=True)
class MoeSizes:
    """The sizes of the model and of a step's input; `capacity` is the number of tokens of a device for an expert."""

    layers: int = 32
    width: int = 4096
    groups: int = 8
    heads_per_group: int = 4
    head: int = 128
    hidden: int = 14336
    experts: int = 8
    vocabulary: int = 32000
    batch: int = 32
    length: int = 8192
    capacity: int = 1280


def moe(sizes: MoeSizes) -> Model:
    """Returns the model; each layer is recomputed for its gradient."""
    width, groups, per_group, head = sizes.width, sizes.groups, sizes.heads_per_group, sizes.head
    layer = {
        "norm_attention": Weight((width,), (None,)),
        "query": Weight((width, groups, per_group, head), ("fsdp", "model", None, None)),
        "key": Weight((width, groups, head), ("fsdp", "model", None)),
        "value": Weight((width, groups, head), ("fsdp", "model", None)),
        "out": Weight((groups, per_group, head, width), ("model", None, None, "fsdp")),
        "norm_experts": Weight((width,), (None,)),
        "router": Weight((width, sizes.experts), (None, None)),
        "gate": Weight((sizes.experts, width, sizes.hidden), ("expert", "fsdp", "model")),
        "up": Weight((sizes.experts, width, sizes.hidden), ("expert", "fsdp", "model")),
        "down": Weight((sizes.experts, sizes.hidden, width), ("expert", "model", "fsdp")),
    }
    weights = {
        "embedding": Weight((sizes.vocabulary, width), ("model", "fsdp")),
        "layers": [layer] * sizes.layers,
        "norm": Weight((width,), (None,)),
        "head": Weight((width, sizes.vocabulary), ("fsdp", "model")),
    }

    def loss(weights: Any, tokens: Any) -> Any:
        import jax
        import jax.numpy as jnp

        inputs, labels = tokens
        x = constrained(weights["embedding"][inputs], BATCH, "seq", None)
        block = jax.checkpoint(lambda p, x: _decoder(p, x, sizes))
        for p in weights["layers"]:
            x = block(p, x)
        logits = jnp.einsum("bsd,dv->bsv", normalized(x, weights["norm"]), weights["head"])
        return cross_entropy(constrained(logits, BATCH, "seq", "model"), labels)

    return Model(MESH, weights, loss, Weight((2, sizes.batch, sizes.length), (None, BATCH, "seq")))


def _decoder(p: Any, x: Any, sizes: MoeSizes) -> Any:
    whole = (BATCH, None, "model", None)
    x = x + attention(p, normalized(x, p["norm_attention"]), keys=whole)
    # One chunk of the sequence for each index of its axis, because each device routes only its own tokens.
    batch, length, width = x.shape
    chunks = normalized(x, p["norm_experts"]).reshape(batch, MESH["seq"], length // MESH["seq"], width)
    chunks = _experts(p, constrained(chunks, BATCH, "seq", None, None), sizes)
    return constrained(x + chunks.reshape(x.shape), BATCH, "seq", None)


def _experts(p: Any, x: Any, sizes: MoeSizes) -> Any:
    """Computes the two experts of each token, on activations of batch, chunk, token and width."""
    import jax
    import jax.numpy as jnp

    combine = _routes(jnp.einsum("bnsd,de->bnse", x, p["router"]).astype(jnp.float32), sizes.capacity)
    sent = jnp.einsum("bnsek,bnsd->ebnkd", (combine > 0).astype(x.dtype), x)
    sent = constrained(sent, "expert", OUTER, "seq", None, None)
    hidden = jax.nn.silu(jnp.einsum("ebnkd,edf->ebnkf", sent, p["gate"])) * jnp.einsum(
        "ebnkd,edf->ebnkf", sent, p["up"]
    )
    back = constrained(jnp.einsum("ebnkf,efd->ebnkd", hidden, p["down"]), "expert", OUTER, "seq", None, None)
    back = constrained(back, None, BATCH, "seq", None, None)
    return jnp.einsum("bnsek,ebnkd->bnsd", combine.astype(x.dtype), back)


def _routes(logits: Any, capacity: int) -> Any:
    """Returns, for each token, expert and slot of its capacity, the weight of the expert's result for the token."""
    import jax
    import jax.numpy as jnp

    shares = jax.nn.softmax(logits)
    combine, taken = 0.0, 0.0
    for _ in range(2):
        chosen = jax.nn.one_hot(jnp.argmax(shares, -1), shares.shape[-1], dtype=shares.dtype)
        # Slots are assigned in the order of the tokens, first for their first choices.
        place = (jnp.cumsum(chosen, 2) + taken) * chosen - 1
        combine += (shares * chosen)[..., None] * jax.nn.one_hot(place.astype(jnp.int32), capacity, dtype=shares.dtype)
        taken, shares = taken + chosen.sum(2, keepdims=True), shares * (1 - chosen)
    return combine
