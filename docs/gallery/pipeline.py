"""A pipeline of four stages: activations move on by one device."""

import jax
import jax.numpy as jnp

import mlir_shard as ms
from mlir_shard import P

STAGES, MICROBATCHES, ROWS, WIDTH = 4, 8, 64, 256


def stage(weights, x):
    return jnp.tanh(x @ weights)


def pipeline(weights, microbatches):
    """Runs all stages at a time, each on the microbatch that has come to it, as GSPMD does."""

    def tick(state, x):
        state = jnp.concatenate([x[None], state[:-1]])
        state = jax.lax.with_sharding_constraint(state, jax.P("stage"))
        state = jax.vmap(stage)(weights, state)
        return state, state

    idle = jnp.zeros((STAGES - 1, ROWS, WIDTH), jnp.float32)
    state = jnp.zeros((STAGES, ROWS, WIDTH), jnp.float32)
    _, states = jax.lax.scan(tick, state, jnp.concatenate([microbatches, idle]))
    return states[STAGES - 1 :, -1]


shape = jax.ShapeDtypeStruct
program = ms.from_jax(
    pipeline,
    shape((STAGES, WIDTH, WIDTH), jnp.float32),
    shape((MICROBATCHES, ROWS, WIDTH), jnp.float32),
    mesh=ms.Mesh({"stage": STAGES}),
    in_shardings=(P("stage"), P()),
)
