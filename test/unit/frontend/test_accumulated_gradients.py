# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs from JAX that compute a sharded batch in a loop over microbatches: bytes and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P

DRAW = np.random.default_rng(0)
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


def floats(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape).astype(np.float32)


def tokens_of(*shape: int) -> np.ndarray:
    return DRAW.integers(0, 32, shape).astype(np.int32)


def received(program: Any, target: str, iterations: int) -> int:
    """Returns the bytes that a device receives, with collectives in a loop counted for each iteration."""
    found = program.partition(target).communication
    return sum(one.communication.bytes_received * iterations ** min(one.loops, 1) for one in found.collectives)


def check(function: Callable[..., Any], arguments: Sequence[Any], mesh: Mapping[str, int], specs: Sequence[Any]) -> Any:
    """Compares the results of both targets with those of JAX; returns the program."""
    program = ms.from_jax(function, *arguments, mesh=ms.Mesh(mesh), in_shardings=tuple(specs))
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for target, engine in ENGINES.items():
        with program.compile(engine, collectives=target) as compiled:
            for got, one in zip(jax.tree.leaves(compiled(*arguments)), wanted, strict=True):
                np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)
    return program


def microbatches(x: Any, steps: int) -> Any:
    return x.reshape(steps, len(x) // steps, *x.shape[1:])


def accumulated(loss: Callable[..., Any], steps: int) -> Callable[..., Any]:
    """Returns a function that adds the losses and the gradients of microbatches."""

    def step(params: Any, *batch: Any) -> Any:
        def add(carried: Any, part: Any) -> Any:
            return jax.tree.map(jnp.add, carried, jax.value_and_grad(loss)(params, *part)), None

        zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
        loss_sum, gradients = jax.lax.scan(add, zeros, tuple(microbatches(x, steps) for x in batch))[0]
        return loss_sum / steps, jax.tree.map(lambda p, g: p - 0.1 * g / steps, params, gradients)

    return step


def layer(h: Any, w: Any) -> Any:
    q, k, v = (h @ one for one in w[:3])
    h = h + jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v @ w[3]
    return h + jax.nn.gelu(h @ w[4]) @ w[5]


def decoder_loss(block: Callable[..., Any]) -> Callable[..., Any]:
    def loss(params: Any, tokens: Any) -> Any:
        h = block(params["embedding"][tokens], params["layer"])
        logits = jax.nn.log_softmax((h @ params["head"])[:, :-1])
        return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()

    return loss


def decoder(width: int) -> dict[str, Any]:
    shapes = [(width, width)] * 4 + [(width, 2 * width), (2 * width, width)]
    layers = [floats(*shape) / 8 for shape in shapes]
    return {"embedding": floats(32, width) / 4, "layer": layers, "head": floats(width, 32) / 4}


REPLICATED = {"embedding": P(), "layer": [P()] * 6, "head": P()}
SHARDED = {"embedding": P(None, "data"), "layer": [P("data")] * 6, "head": P("data")}


@pytest.mark.parametrize("is_rematerialized", [False, True], ids=["kept", "rematerialized"])
@pytest.mark.parametrize("specs", [REPLICATED, SHARDED], ids=["replicated", "sharded"])
def test_tokens_of_a_decoder(specs: Any, is_rematerialized: bool) -> None:
    params, tokens = decoder(16), tokens_of(32, 12)
    step = accumulated(decoder_loss(jax.checkpoint(layer) if is_rematerialized else layer), 4)
    program = check(step, (params, tokens), {"data": 4}, (specs, P("data")))
    if specs is REPLICATED:
        total = sum(one.nbytes for one in jax.tree.leaves(params))
        for target in ENGINES:
            # The tokens, once, and one all-reduce of the gradients and of the loss.
            assert received(program, target, 4) < 2 * 3 * total / 4 + tokens.nbytes


def layers(h: Any, w: Any) -> Any:
    return jax.lax.scan(lambda h, w: (layer(h, w), None), h, w)[0]


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("is_in_loop", [False, True], ids=["one layer", "layers in a loop"])
def test_axis_of_tokens_before_that_of_weights(is_in_loop: bool, steps: int) -> None:
    """An axis along which weights are sharded for memory does not shard the embeddings, which that of tokens shards."""
    stack, block = ((None,), layers) if is_in_loop else ((), layer)
    columns, rows = P(*stack, "data", "t"), P(*stack, "t", "data")
    specs = {"embedding": P("t"), "layer": [*[columns] * 3, rows, columns, rows], "head": P(None, "t")}

    def stacked(params: Any) -> Any:
        return {**params, "layer": [np.stack([one] * 2) for one in params["layer"]]} if is_in_loop else params

    step = accumulated(decoder_loss(block), steps)
    check(step, (stacked(decoder(16)), tokens_of(16, 12)), {"data": 4, "t": 2}, (specs, P("data")))
    params = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype), stacked(decoder(512)))
    large = params, jax.ShapeDtypeStruct((64, 512), np.int32)

    def constrained(h: Any, w: Any) -> Any:
        return block(jax.lax.with_sharding_constraint(h, jax.P("data")), w)

    programs = [
        ms.from_jax(
            accumulated(decoder_loss(one), steps),
            *large,
            mesh=ms.Mesh({"data": 8, "t": 4}),
            in_shardings=(specs, P("data")),
        )
        for one in (block, constrained)
    ]
    for target in ENGINES:
        inferred, written = (received(program, target, 2) for program in programs)
        assert inferred < 1.5 * written


@pytest.mark.parametrize("steps", [2, 4, 8])
@pytest.mark.parametrize("devices", [2, 4, 8])
def test_images(devices: int, steps: int) -> None:
    def loss(kernel: Any, images: Any, wanted: Any) -> Any:
        of = ("NHWC", "HWIO", "NHWC")
        found = jax.lax.conv_general_dilated(images, kernel, (2, 2), "SAME", dimension_numbers=of)
        return jnp.mean((jax.nn.relu(found).mean((1, 2)) - wanted) ** 2)

    mesh, specs = {"data": devices}, (P(), P("data"), P("data"))
    step = accumulated(loss, steps)
    if devices < 8:
        check(step, (floats(3, 3, 3, 8), floats(64, 8, 8, 3), floats(64, 8)), mesh, specs)
    large = [jax.ShapeDtypeStruct(shape, np.float32) for shape in [(3, 3, 3, 8), (512, 64, 64, 3), (512, 8)]]
    program = ms.from_jax(step, *large, mesh=ms.Mesh(mesh), in_shardings=specs)
    batch, gradient = 512 * (64 * 64 * 3 + 8) * 4 // devices, 3 * 3 * 3 * 8 * 4 + 4
    for target in ENGINES:
        # The shard of the batch, some of it in two steps, and one all-reduce.
        assert received(program, target, steps) < 1.01 * batch + 2 * gradient


def test_sums_of_other_values() -> None:
    """The initial value is not zero, one summand is local, and results of the same contraction are scaled."""

    def step(x: Any, w: Any, start: Any) -> Any:
        def add(carried: Any, part: Any) -> Any:
            total, count = carried
            return (total + 2 * (part.T @ jnp.tanh(part @ w)) / 3 + w, count + jnp.sum(part > 0)), None

        return jax.lax.scan(add, (start, jnp.int32(5)), microbatches(x, 4))[0]

    program = check(step, (floats(32, 8), floats(8, 8), floats(8, 8)), {"data": 4}, (P("data"), P(), P()))
    for target in ENGINES:
        found = program.partition(target).communication.collectives
        assert not any(one.loops for one in found), found


def test_nested_loops() -> None:
    def step(x: Any, w: Any) -> Any:
        def inner(total: Any, part: Any) -> Any:
            return total + part.T @ jnp.sin(part @ w), None

        def outer(total: Any, part: Any) -> Any:
            return jax.lax.scan(inner, total, microbatches(part, 2))[0], None

        return jax.lax.scan(outer, jnp.zeros_like(w), microbatches(x, 4))[0]

    program = check(step, (floats(64, 8), floats(8, 8)), {"data": 4}, (P("data"), P()))
    for target in ENGINES:
        found = program.partition(target).communication.collectives
        assert [one.loops for one in found if "reduce" in one.communication.kind.value] == [0]


def test_results_of_microbatches() -> None:
    def step(x: Any, w: Any) -> Any:
        return jax.lax.map(lambda part: jnp.tanh(part @ w), microbatches(x, 8)).reshape(64, 8)

    program = check(step, (floats(64, 8), floats(8, 8)), {"data": 4}, (P("data"), P()))
    for target in ENGINES:
        assert not any(one.loops for one in program.partition(target).communication.collectives)


def test_values_that_the_loop_reads_stay_reduced() -> None:
    """The sum of one iteration is the operand of the next one, so it cannot be reduced after the loop."""

    def step(x: Any, w: Any) -> Any:
        def descend(w: Any, part: Any) -> Any:
            return w + part.T @ jnp.tanh(part @ w) / 100, None

        return jax.lax.scan(descend, w, microbatches(x, 4))[0]

    program = check(step, (floats(32, 8), floats(8, 8)), {"data": 4}, (P("data"), P()))
    for target in ENGINES:
        assert any(one.loops for one in program.partition(target).communication.collectives)


def test_unrolled_microbatches() -> None:
    def step(x: Any, w: Any) -> Any:
        gradient = jax.grad(lambda w, part: jnp.sum(jnp.sin(part @ w)))
        return sum(gradient(w, part) for part in jnp.split(x, 4))

    program = check(step, (floats(64, 8), floats(8, 8)), {"data": 4}, (P("data"), P()))
    for target in ENGINES:
        found = program.partition(target).communication.collectives
        assert sum("reduce" in one.communication.kind.value for one in found) == 1


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_of_a_counted_loop(first: int) -> None:
    def step(x: Any, w: Any) -> Any:
        def add(i: Any, total: Any) -> Any:
            # The last block of a loop that begins at 1 is clamped to the one before.
            part = jax.lax.dynamic_slice_in_dim(x, i * 16, 16)
            return total + part.T @ jnp.sin(part @ w)

        return jax.lax.fori_loop(first, first + 4, add, jnp.zeros_like(w))

    program = check(step, (floats(64, 8), floats(8, 8)), {"data": 4}, (P("data"), P()))
    for target in ENGINES:
        assert not any(one.loops for one in program.partition(target).communication.collectives)


def chunked_gradient(chunks: int) -> Callable[..., Any]:
    """Returns the gradient of a cross-entropy of which the logits of one chunk of the sequence exist at a time."""

    def loss(h: Any, w: Any, targets: Any) -> Any:
        def add(total: Any, part: Any) -> Any:
            h, targets = part
            found = jax.nn.log_softmax(h @ w)
            return total - jnp.take_along_axis(found, targets[..., None], -1).sum(), None

        def parts(x: Any) -> Any:
            return x.reshape(len(x), chunks, -1, *x.shape[2:]).swapaxes(0, 1)

        return jax.lax.scan(jax.checkpoint(add), 0.0, (parts(h), parts(targets)))[0]

    return jax.grad(loss, (0, 1))


@pytest.mark.parametrize("spec", [P(), P("data"), P("data", "t")], ids=["replicated", "sharded", "on two axes"])
def test_chunked_cross_entropy(spec: Any) -> None:
    """Weights that are sharded for memory are gathered once, not activations or logits in each iteration."""
    specs = P("data"), spec, P("data")
    check(chunked_gradient(4), (floats(8, 16, 8), floats(8, 32), tokens_of(8, 16)), {"data": 4, "t": 2}, specs)
    large = [jax.ShapeDtypeStruct(shape, np.float32) for shape in [(16, 2048, 1024), (1024, 32_000)]]
    large.append(jax.ShapeDtypeStruct((16, 2048), np.int32))
    program = ms.from_jax(chunked_gradient(8), *large, mesh=ms.Mesh({"data": 8, "t": 4}), in_shardings=specs)
    weight = 1024 * 32_000 * 4 // (4 if "t" in spec else 1)
    # Along "t": the maxima and sums of a chunk, and the gradient of its activations.
    reduced = 8 * (1 + 0.01) * 2 * 2 * 256 * 1024 * 4 * 3 / 4 if "t" in spec else 0
    for target in ENGINES:
        gathered = 0 if spec == P() else weight * 7 // 8
        assert received(program, target, 8) <= gathered + 2 * weight * 7 // 8 + reduced
