"""A step of training whose parameters are sharded as the batch is."""

import jax
import jax.numpy as jnp

import mlir_shard as ms
from mlir_shard import P


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["up"])
    return jnp.mean((hidden @ params["down"] - y) ** 2)


def step(params, x, y):
    gradients = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


shape = jax.ShapeDtypeStruct
params = {"up": shape((256, 1024), jnp.float32), "down": shape((1024, 256), jnp.float32)}
batch = shape((512, 256), jnp.float32)
specs = {"up": P("data"), "down": P(None, "data")}
program = ms.from_jax(
    step,
    params,
    batch,
    batch,
    mesh=ms.Mesh({"data": 4}),
    in_shardings=(specs, P("data"), P("data")),
    out_shardings=specs,
)
