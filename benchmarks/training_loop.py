# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training loop of a compiled program whose ranks keep running, beside one that starts the ranks for each step.

    python benchmarks/training_loop.py --steps 100

The step is that of a transformer of one block, with cross-entropy and SGD, from JAX and from
PyTorch, on a 2x2 mesh of MPI ranks. Both loops run the same compiled program; the second one closes it after each step.
Prints the median seconds of a step and the difference of the losses from those on one device.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.func import grad_and_value

import mlir_shard as ms
from mlir_shard import P

MESH = ms.Mesh({"data": 2, "model": 2})
VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 32, 32, 4, 16, 8
SPECS = {
    "embed": None,
    "q": P(None, "model"),
    "k": P(None, "model"),
    "v": P(None, "model"),
    "out": P("model", None),
    "up": P(None, "model"),
    "down": P("model", None),
    "head": None,
}
SHAPES = {
    "embed": (VOCABULARY, WIDTH),
    **dict.fromkeys(("q", "k", "v", "out"), (WIDTH, WIDTH)),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
    "head": (WIDTH, VOCABULARY),
}
RATE = 0.1


def jax_step(params: dict[str, Any], tokens: Any, targets: Any) -> Any:
    """Computes a step in JAX."""

    def loss(params: dict[str, Any]) -> Any:
        x = params["embed"][tokens]
        q, k, v = (jnp.reshape(x @ params[name], (BATCH, LENGTH, HEADS, -1)) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k), -1)
        attended = jnp.einsum("bhqk,bkhd->bqhd", scores, v)
        x = x + jnp.reshape(attended, x.shape) @ params["out"]
        x = x + jax.nn.relu(x @ params["up"]) @ params["down"]
        logits = jax.nn.log_softmax(x @ params["head"])
        return -jnp.mean(jnp.sum(logits * jax.nn.one_hot(targets, VOCABULARY), -1))

    value, gradients = jax.value_and_grad(loss)(params)
    return {name: params[name] - RATE * gradients[name] for name in params}, value


def torch_step(params: dict[str, torch.Tensor], tokens: torch.Tensor, targets: torch.Tensor) -> Any:
    """Computes the same step in PyTorch."""

    def loss(params: dict[str, torch.Tensor]) -> torch.Tensor:
        x = torch.nn.functional.embedding(tokens, params["embed"])
        q, k, v = ((x @ params[name]).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in "qkv")
        attended = torch.softmax(q @ k.transpose(-1, -2), -1) @ v
        x = x + attended.transpose(1, 2).flatten(-2) @ params["out"]
        x = x + torch.relu(x @ params["up"]) @ params["down"]
        return torch.nn.functional.cross_entropy((x @ params["head"]).flatten(0, 1), targets.flatten())

    gradients, value = grad_and_value(loss)(params)
    return {name: params[name] - RATE * gradients[name] for name in params}, value


def loop(step: Callable[..., Any], params: Any, tokens: Any, targets: Any, steps: int) -> tuple[list[float], float]:
    """Returns the losses of some steps, and the median seconds of one."""
    losses, seconds = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        params, value = step(params, tokens, targets)
        losses.append(float(value))
        seconds.append(time.perf_counter() - begin)
    return losses, median(seconds)


def measure(name: str, program: Any, local: Callable[..., Any], arguments: Any, steps: int) -> None:
    """Prints a line for a program."""
    wanted, _ = loop(local, *arguments, steps)
    run = program.compile()

    def alone(params: Any, tokens: Any, targets: Any) -> Any:
        result = run({key: np.asarray(one) for key, one in params.items()}, tokens, targets)
        read = {key: np.asarray(one) for key, one in result[0].items()}, np.asarray(result[1])
        run.close()
        return read

    with run:
        losses, staying = loop(run, *arguments, steps)
    _, starting = loop(alone, *arguments, min(steps, 5))
    apart = max(abs(one / other - 1) for one, other in zip(losses, wanted, strict=True))
    print(
        f"{name}: {steps} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}, at most {apart:.1e} from one device's; "
        f"a step takes {staying * 1e3:.1f} ms, with ranks started for it {starting * 1e3:.0f} ms, "
        f"{starting / staying:.0f} times as long"
    )


def main() -> None:
    """Measures the step of JAX and that of PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    draw = np.random.default_rng(0)
    params = {name: (draw.standard_normal(shape) / 8).astype(np.float32) for name, shape in SHAPES.items()}
    tokens = draw.integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32)
    targets = np.roll(tokens, -1, 1)
    shardings = {"in_shardings": (SPECS, P("data"), P("data")), "out_shardings": (SPECS, P())}
    of_jax = ms.from_jax(
        jax.jit(jax_step, donate_argnums=0, keep_unused=True), params, tokens, targets, mesh=MESH, **shardings
    )
    measure("JAX", of_jax, jax.jit(jax_step), (params, tokens, targets), steps)
    in_torch = (
        {name: torch.from_numpy(one) for name, one in params.items()},
        torch.from_numpy(tokens).long(),
        torch.from_numpy(targets).long(),
    )
    of_torch = ms.from_torch(torch_step, *in_torch, mesh=MESH, donate_argnums=0, **shardings)
    measure("PyTorch", of_torch, torch_step, in_torch, steps)


if __name__ == "__main__":
    main()
