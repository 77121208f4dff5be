# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of JAX models on two MPI ranks, beside XLA on two virtual CPU devices.

    python benchmarks/model_steps.py [--only llama] [--steps 15]

Each step computes a loss, its gradient and SGD, of a transformer, a Llama and a ResNet, with the batch or the model
sharded. Both sides get the program that JAX lowers, keep the weights on their devices, and have one thread for each
device. Prints the seconds to compile, which include our first step, and the median milliseconds of later steps, which
are measured in turn; then our speed as a multiple of XLA's, and the difference of the losses. The last line contains
the geometric means.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import geometric_mean, median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from train_steps.llama import LlamaSizes, decoder
from train_steps.step import normalized

import mlir_shard as ms

RATE = 1e-3


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a model, with shapes and mesh axes of its weights and its input.

    Attributes:
        axis: the mesh axis of size 2, `data` or `model`; the others have size 1.
    """

    name: str
    axis: str
    loss: Callable[[Any, Any], Any]
    weights: Any
    input: Any


@dataclass(frozen=True, slots=True)
class Weight:
    """The shape of an array and the mesh axes of its dimensions."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...] = ()


def transformer(layers: int, axis: str) -> Step:
    """Returns a step of a transformer with layer norms and GELU."""
    width, heads, hidden, length, size = 256, 8, 1024, 128, 8
    layer = {
        **dict.fromkeys(("query", "key", "value"), Weight((width, heads, width // heads), (None, "model", None))),
        "out": Weight((heads, width // heads, width), ("model", None, None)),
        "up": Weight((width, hidden), (None, "model")),
        "down": Weight((hidden, width), ("model", None)),
    }

    def layer_norm(x):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)

    def loss(weights, x):
        y = x
        for p in weights:
            h = layer_norm(y)
            query, key, value = (jnp.einsum("bsd,dhk->bshk", h, p[name]) for name in ("query", "key", "value"))
            scores = jnp.einsum("bshk,bthk->bhst", query, key) * (width // heads) ** -0.5
            causal = jnp.tril(jnp.ones((length, length), bool))
            mixed = jnp.einsum("bhst,bthk->bshk", jax.nn.softmax(jnp.where(causal, scores, -1e9)), value)
            y = y + jnp.einsum("bshk,hkd->bsd", mixed, p["out"])
            y = y + jax.nn.gelu(layer_norm(y) @ p["up"]) @ p["down"]
        return ((y - x[:, ::-1]) ** 2).mean()

    x = Weight((size, length, width), ("data",))
    return Step(f"transformer, {layers} layers, {axis}", axis, loss, [layer] * layers, x)


def llama(axis: str) -> Step:
    """Returns a step of two layers of Llama on activations."""
    sizes = LlamaSizes(layers=2, width=512, groups=4, heads_per_group=2, head=64, hidden=1408, batch=4, length=256)
    groups = sizes.groups
    layer = {
        "norm_attention": Weight((sizes.width,)),
        "query": Weight((sizes.width, groups, sizes.heads_per_group, sizes.head), (None, "model")),
        "key": Weight((sizes.width, groups, sizes.head), (None, "model")),
        "value": Weight((sizes.width, groups, sizes.head), (None, "model")),
        "out": Weight((groups, sizes.heads_per_group, sizes.head, sizes.width), ("model",)),
        "norm_mlp": Weight((sizes.width,)),
        "gate": Weight((sizes.width, sizes.hidden), (None, "model")),
        "up": Weight((sizes.width, sizes.hidden), (None, "model")),
        "down": Weight((sizes.hidden, sizes.width), ("model",)),
    }

    def loss(weights, x):
        y = x
        for p in weights["layers"]:
            y = decoder(p, y)
        return ((normalized(y, weights["norm"]) - x[:, ::-1]) ** 2).mean()

    weights = {"layers": [layer] * sizes.layers, "norm": Weight((sizes.width,))}
    return Step(
        f"Llama, 2 layers, {axis}", axis, loss, weights, Weight((sizes.batch, sizes.length, sizes.width), ("data",))
    )


def resnet() -> Step:
    """Returns a step of the stem and four bottleneck blocks of a ResNet, with batch norm, on images of 3 channels."""

    def convolution(x, kernel, stride=1):
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=dims)

    def norm(x):
        mean = x.mean((0, 1, 2))
        return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean((0, 1, 2)) + 1e-5)

    def block(p, x, stride):
        y = jax.nn.relu(norm(convolution(x, p["reduce"])))
        y = jax.nn.relu(norm(convolution(y, p["middle"], stride)))
        return jax.nn.relu(norm(convolution(y, p["expand"])) + norm(convolution(x, p["short"], stride)))

    def loss(weights, images):
        x = jax.nn.relu(norm(convolution(images, weights["stem"], 2)))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for number, p in enumerate(weights["blocks"]):
            x = block(p, x, 1 + number % 2)
        logits = x.mean((1, 2)) @ weights["head"]
        return -jax.nn.log_softmax(logits)[:, 0].mean()

    def of_block(inputs, middle, outputs):
        return {
            "reduce": Weight((1, 1, inputs, middle)),
            "middle": Weight((3, 3, middle, middle)),
            "expand": Weight((1, 1, middle, outputs)),
            "short": Weight((1, 1, inputs, outputs)),
        }

    blocks = [of_block(64, 64, 256), of_block(256, 64, 256), of_block(256, 128, 512), of_block(512, 128, 512)]
    weights = {"stem": Weight((7, 7, 3, 64)), "blocks": blocks, "head": Weight((512, 100))}
    return Step("ResNet, 4 blocks, data", "data", loss, weights, Weight((8, 96, 96, 3), ("data",)))


def lowered(step: Step) -> tuple[Any, Any, Any]:
    """Returns a step lowered by JAX, and random weights and input."""
    draw = np.random.default_rng(0)

    def is_weight(one):
        return isinstance(one, Weight)

    shape = (2, 1, 1) if step.axis == "data" else (1, 1, 2)
    mesh = Mesh(np.array(jax.devices()).reshape(shape), ("data", "fsdp", "model"))

    def sharding(one):
        return NamedSharding(mesh, PartitionSpec(*one.axes))

    def array(one):
        fan = max(np.prod(one.shape[:-1]), 1) if len(one.shape) > 1 else 1
        return (draw.standard_normal(one.shape) / np.sqrt(fan)).astype(np.float32)

    weights = jax.tree.map(array, step.weights, is_leaf=is_weight)
    x = draw.standard_normal(step.input.shape).astype(np.float32)
    of_weights = jax.tree.map(sharding, step.weights, is_leaf=is_weight)
    of_x = sharding(step.input)

    def update(weights, x):
        value, gradient = jax.value_and_grad(step.loss)(weights, x)
        return jax.tree.map(lambda one, by: one - RATE * by, weights, gradient), x, value

    function = jax.jit(
        update, in_shardings=(of_weights, of_x), out_shardings=(of_weights, of_x, NamedSharding(mesh, PartitionSpec()))
    )
    with jax.set_mesh(mesh):
        return function.lower(weights, x), weights, x


def measure(step: Step, steps: int) -> tuple[float, float]:
    """Prints a line; returns the ratios of the seconds to compile and of a step, ours to XLA's."""
    module, weights, x = lowered(step)
    begin = time.perf_counter()
    theirs = module.compile()
    compiled_theirs = time.perf_counter() - begin

    def put(tree, shardings):
        return jax.tree.map(jax.device_put, tree, shardings)

    place = put((weights, x), theirs.input_shardings[0])
    begin = time.perf_counter()
    program = ms.from_jax(module)
    with contextlib.redirect_stderr(io.StringIO()):
        run = program.compile()
    with run:
        mine = run(weights, x)
        compiled = time.perf_counter() - begin
        times: tuple[list[float], list[float]] = [], []
        losses = []
        for _ in range(steps):
            begin = time.perf_counter()
            place = theirs(*place[:2])
            jax.block_until_ready(place)
            middle = time.perf_counter()
            mine = run(*mine[:2])
            times[1].append(time.perf_counter() - middle)
            times[0].append(middle - begin)
            losses.append((float(place[2]), float(mine[2])))
    # Our side has run one step more.
    apart = max(abs(later[0] / now[1] - 1) for now, later in pairwise(losses))
    xla, here = (median(one) for one in times)
    print(
        f"{step.name:28} compile {compiled:6.2f} s, XLA {compiled_theirs:6.2f} s; a step {here * 1e3:7.1f} ms, "
        f"XLA {xla * 1e3:7.1f} ms; {xla / here:5.2f} times as fast; losses within {apart:.0e}",
        flush=True,
    )
    return compiled / compiled_theirs, xla / here


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the models with this in their name")
    parser.add_argument("--steps", type=int, default=15)
    arguments = parser.parse_args()
    models = [
        transformer(2, "data"),
        transformer(2, "model"),
        transformer(24, "data"),
        llama("data"),
        llama("model"),
        resnet(),
    ]
    chosen = [one for one in models if arguments.only.lower() in one.name.lower()]
    ratios = [measure(one, arguments.steps) for one in chosen]
    compiling, running = (geometric_mean(one) for one in zip(*ratios, strict=True))
    print(f"geometric mean: compile {compiling:.2f} times XLA's seconds, {running:.2f} times its speed")


if __name__ == "__main__":
    main()
