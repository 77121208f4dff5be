# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compile time of other programs than a transformer's gradient: loops, calls, manual computations, convolutions.

    python benchmarks/program_forms.py [--forms scanned calls ...] [--repeat 5] [--rounds 3]

JAX lowers each for 8 devices; the functions describe the programs. Prints the median seconds of
`sdy-propagation-pipeline` and of the entire pipeline to `shard`, beside those of Shardy's propagation pipeline, without
and with its passes for reshards and collectives, each in a separate process, in turn. The pipeline is measured with new
plans, and again in the same process with cached ones, as in `spmdize.py`. Shardy's side does not make the local
program, because that fails for most of these programs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from propagation import OURS, SHARDY, operations_in
from spmdize import AGAIN, ANEW, in_turn, seconds_of
from transformer import DEVICES

LAYERS, WIDTH, HIDDEN, BATCH = 100, 256, 1024, 64
PROPAGATION = "sdy-propagation-pipeline"
PIPELINE = "shard-propagate,shard-spmdize{collectives=shard planner=optimal}"
SHARDY_PIPELINE = (
    f"{PROPAGATION},func.func(sdy-insert-explicit-reshards{{enable-full-version=true}},sdy-reshard-to-collectives)"
)


class Lowering:
    """A class that lowers programs of layers for a mesh of data by model."""

    def __init__(self) -> None:
        os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import numpy as np
        from jax.sharding import Mesh

        self.mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))

    def sharding(self, *axes: str | None) -> Any:
        """Returns the sharding of a tensor along these axes of the mesh."""
        from jax.sharding import NamedSharding, PartitionSpec

        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def gradient(self, forward: Callable[[Any, Any], Any], *, stacked: bool = False) -> str:
        """Lowers the gradient of a function of the parameters of all layers, in a list or stacked, and of a batch."""
        import jax

        one = {"up": ((WIDTH, HIDDEN), (None, "model")), "down": ((HIDDEN, WIDTH), ("model", None))}
        around = (LAYERS,) if stacked else ()
        parameters = {name: _tensor(*around, *shape) for name, (shape, _) in one.items()}
        shardings = {name: self.sharding(*((None,) * stacked), *axes) for name, (_, axes) in one.items()}
        of_layers = (parameters, shardings) if stacked else ([parameters] * LAYERS, [shardings] * LAYERS)
        gradient = jax.grad(lambda parameters, x: (forward(parameters, x) ** 2).sum())
        lowered = jax.jit(gradient, in_shardings=(of_layers[1], self.sharding("data", None)))
        text: str = lowered.lower(of_layers[0], _tensor(BATCH, WIDTH)).as_text()
        return text


def _tensor(*shape: int) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.ShapeDtypeStruct(shape, jnp.float32)


def layer(p: Any, x: Any) -> Any:
    """Computes a layer of two matrix products."""
    import jax

    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def _in_turn(one: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def forward(parameters: Any, x: Any) -> Any:
        for p in parameters:
            x = one(p, x)
        return x

    return forward


def scanned(lowering: Lowering) -> str:
    """Lowers a loop over the layers, which recomputes activations."""
    import jax

    again = jax.checkpoint(layer)
    return lowering.gradient(lambda p, x: jax.lax.scan(lambda x, p: (again(p, x), None), x, p)[0], stacked=True)


def loops(lowering: Lowering) -> str:
    """Lowers a loop of four iterations for each layer."""
    import jax

    return lowering.gradient(_in_turn(lambda p, x: jax.lax.fori_loop(0, 4, lambda _, x: layer(p, x), x)))


def checkpointed(lowering: Lowering) -> str:
    """Lowers a sequence of layers, which recompute activations behind barriers."""
    import jax

    return lowering.gradient(_in_turn(jax.checkpoint(layer)))


def calls(lowering: Lowering) -> str:
    """Lowers calls of one function for all layers."""
    import jax

    return lowering.gradient(_in_turn(jax.jit(layer)))


def manual(lowering: Lowering) -> str:
    """Lowers a manual computation for each layer."""
    import jax
    from jax.sharding import PartitionSpec as Spec

    def local(p: Any, x: Any) -> Any:
        return x + jax.lax.psum(jax.nn.gelu(x @ p["up"]) @ p["down"], "model")

    parameters = {"up": Spec(None, "model"), "down": Spec("model", None)}
    specs = (parameters, Spec("data", None)), Spec("data", None)
    mapped = jax.shard_map(local, mesh=lowering.mesh, in_specs=specs[0], out_specs=specs[1])
    return lowering.gradient(_in_turn(lambda p, x: jax.numpy.tanh(mapped(p, x))))


def convolutions(lowering: Lowering) -> str:
    """Lowers a residual network of 50 convolutions of different shapes on images."""
    import jax

    channels = [64 * 2 ** (number // 13) for number in range(50)]
    kernels = [_tensor(3, 3, before, after) for before, after in zip([3, *channels], channels, strict=False)]

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            stride = 2 if kernel.shape[2] * 2 == kernel.shape[3] else 1
            dimensions = ("NHWC", "HWIO", "NHWC")
            y = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=dimensions)
            y = jax.nn.relu((y - (mean := y.mean((0, 1, 2)))) * jax.lax.rsqrt(((y - mean) ** 2).mean((0, 1, 2)) + 1e-5))
            x = y + x if x.shape == y.shape else y
        return (x**2).sum()

    shardings = [lowering.sharding(None, None, None, "model")] * 50, lowering.sharding("data", None, None, None)
    text: str = jax.jit(jax.grad(loss), in_shardings=shardings).lower(kernels, _tensor(BATCH, 64, 64, 3)).as_text()
    return text


def carried(lowering: Lowering) -> str:
    """Lowers a loop that carries 1,000 tensors."""
    import jax

    def loop(parameters: Any, x: Any) -> Any:
        def body(_: Any, carried: Any) -> Any:
            parameters, x = carried
            return [0.99 * p + 0.01 * x.mean() for p in parameters], jax.numpy.tanh(x)

        return jax.lax.fori_loop(0, 100, body, (parameters, x))

    parameters, shardings = _many_parameters(lowering)
    lowered = jax.jit(loop, in_shardings=(shardings, lowering.sharding("data", None)))
    text: str = lowered.lower(parameters, _tensor(BATCH, WIDTH)).as_text()
    return text


def _many_parameters(lowering: Lowering) -> tuple[list[Any], list[Any]]:
    """Returns 1,000 tensors and their shardings."""
    numbers = range(1000)
    parameters = [_tensor(64 + 8 * (number % 50), WIDTH) for number in numbers]
    return parameters, [lowering.sharding(*((None, "model") if one % 2 else ("data", None))) for one in numbers]


def optimizer(lowering: Lowering) -> str:
    """Lowers a step of Adam on 1,000 parameters."""
    import jax
    import jax.numpy as jnp

    def step(parameters: Any, gradients: Any, means: Any, squares: Any) -> Any:
        def one(p: Any, g: Any, m: Any, v: Any) -> Any:
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

        return list(map(one, parameters, gradients, means, squares))

    parameters, shardings = _many_parameters(lowering)
    text: str = jax.jit(step, in_shardings=(shardings,) * 4).lower(*(parameters,) * 4).as_text()
    return text


FORMS = {one.__name__: one for one in (scanned, loops, checkpointed, calls, manual, carried, convolutions, optimizer)}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", nargs="*", choices=list(FORMS), default=list(FORMS))
    parser.add_argument("--repeat", type=int, default=5, help="measurements of each process")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side")
    arguments = parser.parse_args()
    lowering = Lowering()
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.forms:
            file = Path(folder, f"{name}.mlir")
            file.write_text(text := FORMS[name](lowering))
            timed = partial(seconds_of, repeat=arguments.repeat)
            sides = {
                "propagation": partial(timed, OURS, file, PROPAGATION),
                "anew": partial(timed, ANEW, file, PIPELINE),
                "again": partial(timed, AGAIN, file, PIPELINE),
                "Shardy's propagation": partial(timed, SHARDY, file, PROPAGATION),
                "Shardy's pipeline": partial(timed, SHARDY, file, SHARDY_PIPELINE),
            }
            took = in_turn(sides, arguments.rounds)
            propagation, pipeline = took["Shardy's propagation"], took["Shardy's pipeline"]
            print(
                f"{name}, {operations_in(text)} operations: propagation {took['propagation']:.3f} s, Shardy "
                f"{propagation:.3f} s, {propagation / took['propagation']:.2f} times as fast; pipeline anew "
                f"{took['anew']:.3f} s, again {took['again']:.3f} s, Shardy to collectives {pipeline:.3f} s: "
                f"{took['anew'] / pipeline:.2f} and {took['again'] / pipeline:.2f} of its time",
                flush=True,
            )


if __name__ == "__main__":
    main()
