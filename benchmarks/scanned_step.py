# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A partitioned train step of JAX, scanned, rematerialized and tensor-parallel: its bytes beside those of XLA.

    python benchmarks/scanned_step.py [--layers 4] [--meshes 2x4] [--width 64] [--hidden 128] [--batch 8] [--run]

The layers of a perceptron with residuals are one `lax.scan` whose body is a `jax.checkpoint` with sharding constraints
in it, so that JAX lowers functions called from the bodies of loops. The step is gradient descent on the mean square of
the output. Prints the bytes that a device receives in each kind of collective, in all iterations, in the local program
of both targets and in XLA's compiled program. With `--run` the StableHLO program runs on virtual devices, and is
compared with JAX on one device. The exit status is 1 if a target receives more bytes than XLA's program or than the
other target, or if a result differs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from hlo_collectives import repeated_hlo_collectives

import mlir_shard
from mlir_shard.runtime.backends import backend
from mlir_shard.runtime.compile import Pipelines
from mlir_shard.runtime.execution import execute
from mlir_shard.runtime.reference.verify import compare
from mlir_shard.transforms.communication.shard_communication_report import communication_report

_DEVICES = 8
_TARGETS = ("shard", "stablehlo")


def step(weights: Any, x: Any) -> Any:
    """Computes one step; returns the weights after it, and the loss."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    def constrained(array: Any, *axes: str | None) -> Any:
        return jax.lax.with_sharding_constraint(array, P(*axes))

    @jax.checkpoint
    def layer(x: Any, of_layer: Any) -> Any:
        hidden = constrained(jnp.tanh(x @ of_layer["up"]), "data", "model")
        return constrained(x + hidden @ of_layer["down"], "data", None)

    def loss(weights: Any) -> Any:
        last, _ = jax.lax.scan(lambda x, of_layer: (layer(x, of_layer), None), x, weights)
        return jnp.mean(last**2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return jax.tree.map(lambda weight, of_loss: weight - 0.1 * of_loss, weights, gradient), value


def inputs(arguments: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """Returns random weights and activations."""
    generator = np.random.default_rng(0)

    def one(*shape: int) -> Any:
        return (generator.standard_normal(shape) * shape[-2] ** -0.5).astype(np.float32)

    layers, width, hidden = arguments.layers, arguments.width, arguments.hidden
    return {"up": one(layers, width, hidden), "down": one(layers, hidden, width)}, one(arguments.batch, width)


def lowered_step(arguments: argparse.Namespace, shape: Sequence[int]) -> Any:
    """Returns the step lowered by JAX for a mesh of data by model."""
    import jax
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(shape), ("data", "model"))
    weights = {"up": P(None, None, "model"), "down": P(None, "model", None)}
    shardings = {name: NamedSharding(mesh, spec) for name, spec in weights.items()}
    jitted = jax.jit(
        step,
        in_shardings=(shardings, NamedSharding(mesh, P("data", None))),
        out_shardings=(shardings, NamedSharding(mesh, P())),
    )
    with jax.sharding.set_mesh(mesh):
        return jitted.lower(*inputs(arguments))


def spelled(received: Counter[str]) -> str:
    """Returns the total bytes and those of each kind as text."""
    kinds = ", ".join(f"{kind} {count:,} B" for kind, count in sorted(received.items()))
    return f"{received.total():,} B ({kinds})"


def measure(arguments: argparse.Namespace, shape: tuple[int, int]) -> bool:
    """Prints the bytes on one mesh; returns whether no target receives more than XLA's program or the other one."""
    lowered = lowered_step(arguments, shape)
    print(f"mesh {shape[0]}x{shape[1]}", flush=True)
    of_xla: Counter[str] = Counter()
    for communication, times in repeated_hlo_collectives(lowered.compile().as_text()):
        of_xla[communication.kind.value] += communication.bytes_received * times
    print(f"  XLA: a device receives {spelled(of_xla)}", flush=True)
    totals = []
    for target in _TARGETS:
        module = mlir_shard.parse(lowered.as_text(), mlir_shard.create_context())
        mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={target}}})")
        received: Counter[str] = Counter()
        for one in communication_report(module.operation).collectives:
            received[one.communication.kind.value] += one.communication.bytes_received * arguments.layers**one.loops
        print(f"  {target}: a device receives {spelled(received)}", flush=True)
        totals.append(received.total())
    return len(set(totals)) == 1 and totals[0] <= of_xla.total()


def is_right(arguments: argparse.Namespace, shape: tuple[int, int]) -> bool:
    """Prints whether the results of the StableHLO program equal those of JAX without sharding, and returns it."""
    import jax

    arrays = inputs(arguments)
    one_device = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    with jax.sharding.set_mesh(one_device):
        expected = jax.tree.leaves(jax.jit(step)(*arrays))
    module = mlir_shard.parse(lowered_step(arguments, shape).as_text(), mlir_shard.create_context())
    pipelines = Pipelines("shard-propagate", "shard-spmdize{collectives=stablehlo}")
    results = execute(module, jax.tree.leaves(arrays), pipelines=pipelines, engine=backend("pjrt"))
    found = [compare(np.asarray(one), np.asarray(of), "f32") for one, of in zip(results, expected, strict=True)]
    equal = all(one.is_equal for one in found)
    print(
        f"  {len(found)} results, max rel error {max(one.relative for one in found):.1e}, {'OK' if equal else 'WRONG'}"
    )
    return equal


def mesh_shape(text: str) -> tuple[int, int]:
    """Reads the devices along data and along model, as 2x4; raises ValueError if they are not 8."""
    data, model = map(int, text.split("x"))
    if data * model != _DEVICES:
        raise ValueError(f"{text} is not a mesh of {_DEVICES} devices")
    return data, model


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("layers", 4), ("width", 64), ("hidden", 128), ("batch", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--meshes", type=mesh_shape, nargs="*", default=[(2, 4)], help="devices along data x model")
    parser.add_argument("--run", action="store_true", help="compare results, too")
    arguments = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={_DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    right = [measure(arguments, shape) for shape in arguments.meshes]
    if arguments.run:
        right += [is_right(arguments, shape) for shape in arguments.meshes]
    return not all(right)


if __name__ == "__main__":
    sys.exit(main())
