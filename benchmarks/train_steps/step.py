# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A train step: a loss in bf16 of f32 masters, its gradient, and AdamW, lowered by JAX from shapes alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Axes = tuple[str | tuple[str, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class Weight:
    """The shape of a weight and the mesh axes of its dimensions."""

    shape: tuple[int, ...]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Model:
    """A model to train: a tree of `Weight`, and the loss of a tree of bf16 arrays of these shapes and of tokens.

    tokens: the shape and the axes of the input of i32.
    """

    mesh: Mapping[str, int]
    weights: Any
    loss: Callable[[Any, Any], Any]
    tokens: Weight


def prepare(devices: int) -> None:
    """Sets the number of JAX's virtual CPU devices; must be called before JAX is imported."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"


def constrained(x: Any, *axes: str | tuple[str, ...] | None) -> Any:
    """Constrains an array to these mesh axes along its dimensions; under the mesh of `lowered_step`."""
    import jax

    return jax.lax.with_sharding_constraint(x, jax.sharding.PartitionSpec(*axes))


def lowered_step(model: Model) -> Any:
    """Returns the lowered step, from masters, moments, number and tokens to new masters, moments, number, and loss."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    names, sizes = tuple(model.mesh), tuple(model.mesh.values())
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(sizes), names)

    def abstract(one: Weight, dtype: Any = jnp.float32) -> Any:
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*one.axes))
        return jax.ShapeDtypeStruct(one.shape, dtype, sharding=sharding)

    masters = jax.tree.map(abstract, model.weights, is_leaf=lambda one: isinstance(one, Weight))
    shardings = jax.tree.map(lambda one: one.sharding, masters)

    def step(masters, first, second, number, tokens):
        def loss(masters):
            return model.loss(jax.tree.map(lambda one: one.astype(jnp.bfloat16), masters), tokens)

        value, gradient = jax.value_and_grad(loss)(masters)
        number = number + 1
        rate, decay, b1, b2 = 3e-4, 0.1, 0.9, 0.95
        scale = rate * jnp.sqrt(1 - b2**number) / (1 - b1**number)
        first = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, first, gradient)
        second = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, second, gradient)
        masters = jax.tree.map(
            lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8) - rate * decay * p, masters, first, second
        )
        return masters, first, second, number, value

    number = abstract(Weight((), ()))
    arguments = masters, masters, masters, number, abstract(model.tokens, jnp.int32)
    with jax.sharding.set_mesh(mesh):
        jitted = jax.jit(step, out_shardings=(shardings, shardings, shardings, number.sharding, number.sharding))
        return jitted.lower(*arguments)


def normalized(x: Any, gain: Any) -> Any:
    """Divides by the root of the mean square along the last dimension, in f32, and multiplies by `gain`."""
    import jax
    import jax.numpy as jnp

    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * gain


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Computes the mean cross-entropy over all labels, in f32."""
    import jax
    import jax.numpy as jnp

    logits = logits.astype(jnp.float32)
    classes = jax.lax.broadcasted_iota(labels.dtype, logits.shape, logits.ndim - 1)
    picked = jnp.where(classes == labels[..., None], logits, 0.0).sum(-1)
    return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()
