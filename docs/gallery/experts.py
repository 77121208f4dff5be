"""A mixture of experts: tokens move to the devices of their experts and back."""

import jax
import jax.numpy as jnp

import mlir_shard as ms
from mlir_shard import P

GROUPS, TOKENS, EXPERTS, CAPACITY, WIDTH, HIDDEN = 4, 256, 4, 128, 512, 2048
constrain = jax.lax.with_sharding_constraint


def experts(params, x):
    """Sends each token to one expert, within groups of tokens as in GShard."""
    gates = jax.nn.softmax(jnp.einsum("gtd,de->gte", x, params["router"]))
    chosen = jax.nn.one_hot(jnp.argmax(gates, axis=-1), EXPERTS)
    places = jnp.cumsum(chosen, axis=1) * chosen - 1
    slots = jax.nn.one_hot(places.astype(jnp.int32), CAPACITY)
    of_groups = constrain(jnp.einsum("gtec,gtd->egcd", slots, x), jax.P(None, "expert"))
    sent = constrain(of_groups, jax.P("expert"))
    hidden = jax.nn.relu(jnp.einsum("egcd,edh->egch", sent, params["up"]))
    of_experts = constrain(jnp.einsum("egch,ehd->egcd", hidden, params["down"]), jax.P("expert"))
    back = constrain(of_experts, jax.P(None, "expert"))
    return jnp.einsum("egcd,gtec,gte->gtd", back, slots, gates)


shape = jax.ShapeDtypeStruct
params = {
    "router": shape((WIDTH, EXPERTS), jnp.float32),
    "up": shape((EXPERTS, WIDTH, HIDDEN), jnp.float32),
    "down": shape((EXPERTS, HIDDEN, WIDTH), jnp.float32),
}
program = ms.from_jax(
    experts,
    params,
    shape((GROUPS, TOKENS, WIDTH), jnp.float32),
    mesh=ms.Mesh({"expert": 4}),
    in_shardings=({"router": P(), "up": P("expert"), "down": P("expert")}, P("expert")),
)
