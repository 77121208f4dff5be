# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All ops except contractions in local programs of the MPI engine on one core, beside XLA:CPU.

    python benchmarks/kernels.py

Each case is a function of JAX, compiled by XLA, and by mlir-shard from the StableHLO that JAX exports. Both run in
this process, in turn, with one thread, and must agree. Prints the milliseconds of a call, and the ratio of our speed to
XLA's. The last line contains the geometric mean of the ratios, and the smallest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from local_programs import in_turn, ours  # isort: skip

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

Array = Any


@dataclass(frozen=True)
class Case:
    """A function of JAX and its arguments.

    Attributes:
        family: a name for `--only`, besides the case's own.
        arguments: a function that makes the arguments.
    """

    family: str
    name: str
    function: Callable[..., Any]
    arguments: Callable[[np.random.Generator], Sequence[Array]]


def normal(*shapes: tuple[int, ...], dtype: Any = np.float32) -> Callable[[np.random.Generator], list[Array]]:
    """Returns a function that makes arrays of normally distributed numbers."""
    return lambda draw: [draw.standard_normal(shape).astype(dtype) for shape in shapes]


def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    """Computes a layer norm over the last dimension."""
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def rms_norm(x: Array, scale: Array) -> Array:
    """Computes an RMS norm over the last dimension."""
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale


def pool(operator: Any, start: Any, window: tuple[int, ...], strides: tuple[int, ...]) -> Callable[[Array], Array]:
    """Returns a function that reduces windows."""
    return lambda x: jax.lax.reduce_window(x, start, operator, window, strides, "SAME")


def rotary(x: Array, cos: Array, sin: Array) -> Array:
    """Applies a rotary embedding to the halves of the last dimension."""
    left, right = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate([-right, left], axis=-1) * sin


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Computes the mean cross-entropy over rows."""
    logs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logs, labels[:, None], axis=1).mean()


def adam(w: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
    """Computes a step of Adam."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


def positive_definite(draw: np.random.Generator, size: int) -> Array:
    """Returns a random positive definite matrix, for Cholesky decompositions."""
    a = draw.standard_normal((size, size)).astype(np.float32)
    return a @ a.T + size * np.eye(size, dtype=np.float32)


def cases() -> list[Case]:
    """Returns the cases of each family, in large and small shapes of models."""
    bf16 = ml_dtypes.bfloat16
    found = [
        Case("softmax", f"softmax {shape}", jax.nn.softmax, normal(shape))
        for shape in ((64, 1000), (1024, 1024), (4, 8, 128, 128))
    ]
    found += [
        Case("softmax", "softmax bf16 (1024, 1024)", jax.nn.softmax, normal((1024, 1024), dtype=bf16)),
        Case("softmax", "log softmax (256, 4096)", jax.nn.log_softmax, normal((256, 4096))),
        Case(
            "softmax",
            "cross entropy (256, 4096)",
            cross_entropy,
            lambda draw: [
                draw.standard_normal((256, 4096)).astype(np.float32),
                draw.integers(0, 4096, 256).astype(np.int32),
            ],
        ),
    ]
    for shape in ((512, 768), (64, 4096)):
        found += [
            Case("norm", f"layer norm {shape}", layer_norm, normal(shape, shape[1:], shape[1:])),
            Case("norm", f"rms norm {shape}", rms_norm, normal(shape, shape[1:])),
        ]
    found += [
        Case("norm", "rms norm bf16 (512, 1024)", rms_norm, normal((512, 1024), (1024,), dtype=bf16)),
        Case(
            "norm",
            "gradient of layer norm (512, 768)",
            jax.grad(lambda *a: layer_norm(*a).sum(), (0, 1, 2)),
            normal((512, 768), (768,), (768,)),
        ),
    ]
    big, small = (1024, 1024), (64, 64)
    for shape in (big, small):
        found += [
            Case("elementwise", f"add {shape}", jnp.add, normal(shape, shape)),
            Case("elementwise", f"bias and relu {shape}", lambda x, b: jax.nn.relu(x + b), normal(shape, shape[1:])),
            Case("elementwise", f"exp {shape}", jnp.exp, normal(shape)),
            Case("elementwise", f"tanh {shape}", jnp.tanh, normal(shape)),
            Case("elementwise", f"gelu {shape}", jax.nn.gelu, normal(shape)),
        ]
    found += [
        Case("elementwise", "silu (1024, 1024)", lambda x, y: jax.nn.silu(x) * y, normal(big, big)),
        Case("elementwise", "erf (1024, 1024)", jax.lax.erf, normal(big)),
        Case("elementwise", "sin and cos (1024, 1024)", lambda x: jnp.sin(x) * jnp.cos(x), normal(big)),
        Case("elementwise", "log1p (1024, 1024)", lambda x: jnp.log1p(jnp.abs(x)), normal(big)),
        Case("elementwise", "power (1024, 1024)", lambda x, y: jnp.abs(x) ** y, normal(big, big)),
        Case("elementwise", "exp f64 (1024, 1024)", jnp.exp, normal(big, dtype=np.float64)),
        Case("elementwise", "silu bf16 (1024, 1024)", lambda x, y: jax.nn.silu(x) * y, normal(big, big, dtype=bf16)),
        Case("elementwise", "adam (1024, 1024)", adam, lambda draw: [abs(one) for one in normal(*[big] * 4)(draw)]),
        Case("elementwise", "rotary (8, 128, 8, 64)", rotary, normal((8, 128, 8, 64), (128, 1, 64), (128, 1, 64))),
        Case("elementwise", "bf16 to f32 (1024, 1024)", lambda x: x.astype(np.float32), normal(big, dtype=bf16)),
        Case("elementwise", "f32 to bf16 (1024, 1024)", lambda x: x.astype(bf16), normal(big)),
        Case("elementwise", "causal mask (1024, 1024)", jnp.tril, normal(big)),
        Case("elementwise", "pad and slice (1024, 1024)", lambda x: jnp.pad(x, 1)[2:, 2:], normal(big)),
        Case("elementwise", "concatenate (1024, 1024)", lambda x, y: jnp.concatenate([x, y], 1), normal(big, big)),
    ]
    for shape, order in (
        ((1024, 1024), (1, 0)),
        ((1000, 1003), (1, 0)),
        ((8, 128, 12, 64), (0, 2, 1, 3)),
        ((8, 128, 12, 64), (0, 2, 3, 1)),
        ((8, 56, 56, 64), (0, 3, 1, 2)),
        ((8, 64, 56, 56), (0, 2, 3, 1)),
    ):
        found += [Case("transpose", f"transpose {shape} {order}", lambda x, o=order: x.transpose(o), normal(shape))]
    found += [Case("transpose", "reverse (1024, 1024)", lambda x: x[::-1, ::-1], normal(big))]
    for axis in (0, 1, None):
        found += [
            Case("reduction", f"sum of axis {axis}", lambda x, axis=axis: x.sum(axis), normal(big)),
            Case("reduction", f"max of axis {axis}", lambda x, axis=axis: x.max(axis), normal(big)),
        ]
    found += [
        Case("reduction", "sum bf16 of axis 1", lambda x: x.sum(1), normal(big, dtype=bf16)),
        Case("reduction", "sum f64 of all", jnp.sum, normal(big, dtype=np.float64)),
        Case("reduction", "sum i32 of axis 1", lambda x: x.astype(np.int32).sum(1, dtype=np.int32), normal(big)),
        Case("reduction", "variance of axis 0", lambda x: x.var(0), normal(big)),
        Case("reduction", "argmax of axis 1", lambda x: x.argmax(1), normal(big)),
        Case("reduction", "mean of batch norm", lambda x: x.mean((0, 1, 2)), normal((8, 56, 56, 64))),
        Case("reduction", "mean square error", lambda x, y: ((x - y) ** 2).mean(), normal(big, big)),
    ]
    image = normal((8, 56, 56, 64))
    two, three, one = (1, 2, 2, 1), (1, 3, 3, 1), (1, 1, 1, 1)
    maximum, add = jax.lax.max, jax.lax.add
    found += [
        Case("pool", "max pool 2/2", pool(maximum, -np.inf, two, two), image),
        Case("pool", "max pool 3/2", pool(maximum, -np.inf, three, two), image),
        Case("pool", "average pool 3/1", lambda x: pool(add, 0.0, three, one)(x) / 9, image),
        Case(
            "pool",
            "max pool 3/2 NCHW",
            pool(maximum, -np.inf, (1, 1, 3, 3), (1, 1, 2, 2)),
            normal((8, 64, 56, 56)),
        ),
        Case(
            "pool",
            "gradient of max pool 2/2",
            jax.grad(lambda x: (pool(maximum, -np.inf, two, two)(x) ** 2).sum()),
            image,
        ),
    ]
    found += [
        Case("sort", "sort (100000)", jnp.sort, normal((100000,))),
        Case("sort", "sort (256, 1024)", jnp.sort, normal((256, 1024))),
        Case("sort", "sort (1024, 256) of axis 0", lambda x: jnp.sort(x, axis=0), normal((1024, 256))),
        Case("sort", "argsort (256, 1024)", jnp.argsort, normal((256, 1024))),
        Case("sort", "top 8 of (256, 4096)", lambda x: jax.lax.top_k(x, 8), normal((256, 4096))),
        Case("sort", "top 2 of (4096, 8)", lambda x: jax.lax.top_k(x, 2), normal((4096, 8))),
    ]

    def indexed(shape: tuple[int, ...], indices: tuple[int, ...], bound: int, *more: tuple[int, ...]) -> Any:
        return lambda draw: [
            draw.standard_normal(shape).astype(np.float32),
            draw.integers(0, bound, indices).astype(np.int32),
            *normal(*more)(draw),
        ]

    found += [
        Case("gather", "rows of (32000, 256)", lambda x, i: x[i], indexed((32000, 256), (4096,), 32000)),
        Case("gather", "take along axis", lambda x, i: jnp.take_along_axis(x, i, 1), indexed(big, (1024, 64), 1024)),
        Case("gather", "elements of (1000000)", lambda x, i: x[i], indexed((1000000,), (100000,), 1000000)),
        Case("gather", "columns of (1024, 1024)", lambda x, i: x[:, i], indexed(big, (256,), 1024)),
    ]
    rows = indexed((32000, 256), (4096,), 32000, (4096, 256))
    found += [
        Case("scatter", "add rows of (32000, 256)", lambda x, i, y: x.at[i].add(y), rows),
        Case("scatter", "set rows of (32000, 256)", lambda x, i, y: x.at[i].set(y), rows),
        Case(
            "scatter",
            "add elements",
            lambda x, i, y: x.at[i].add(y),
            indexed((1000000,), (100000,), 1000000, (100000,)),
        ),
        Case(
            "scatter",
            "segment sum",
            lambda x, i: jax.ops.segment_sum(x, i, num_segments=1000),
            indexed((8192, 64), (8192,), 1000),
        ),
        Case("scatter", "bincount", lambda x, i: jnp.bincount(i, length=1000), indexed((2,), (100000,), 1000)),
        Case(
            "scatter",
            "update slice",
            lambda x, y, i: jax.lax.dynamic_update_slice(x, y, (i[0], np.int32(0))),
            lambda draw: [*normal(big, (16, 1024))(draw), np.array([100], np.int32)],
        ),
    ]
    found += [
        Case("cumulative", "cumsum (1000000)", jnp.cumsum, normal((1000000,))),
        Case("cumulative", "cumsum (1024, 1024) of axis 0", lambda x: jnp.cumsum(x, 0), normal(big)),
        Case("cumulative", "cumsum (1024, 1024) of axis 1", lambda x: jnp.cumsum(x, 1), normal(big)),
        Case("cumulative", "cummax (1024, 1024) of axis 1", lambda x: jax.lax.cummax(x, 1), normal(big)),
        Case(
            "cumulative",
            "associative scan (4096, 64)",
            lambda x, y: jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, y)),
            lambda draw: [one * 0.1 for one in normal((4096, 64), (4096, 64))(draw)],
        ),
    ]
    found += [
        Case("fft", "fft (64, 4096)", jnp.fft.fft, normal((64, 4096))),
        Case("fft", "rfft (64, 4096)", jnp.fft.rfft, normal((64, 4096))),
        Case("fft", "irfft (64, 2049)", jnp.fft.irfft, normal((64, 2049))),
        Case("fft", "fft of a prime (64, 1009)", jnp.fft.fft, normal((64, 1009))),
        Case("fft", "fft2 (8, 256, 256)", jnp.fft.fft2, normal((8, 256, 256))),
    ]
    found += [
        Case("linear algebra", "cholesky (256, 256)", jnp.linalg.cholesky, lambda d: [positive_definite(d, 256)]),
        Case("linear algebra", "cholesky (1024, 1024)", jnp.linalg.cholesky, lambda d: [positive_definite(d, 1024)]),
        Case(
            "linear algebra",
            "cholesky (64, 32, 32)",
            jnp.linalg.cholesky,
            lambda d: [np.stack([positive_definite(d, 32)] * 64)],
        ),
        Case(
            "linear algebra",
            "triangular solve (512, 512)",
            lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
            lambda d: [positive_definite(d, 512), *normal((512, 256))(d)],
        ),
    ]
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.3, help="at least, for each case")
    parser.add_argument("--only", default="", help="cases with this in their names or families")
    parser.add_argument("--worst", action="store_true", help="print the cases again by their ratio, smallest first")
    options = parser.parse_args()
    print(f"{'milliseconds':<48}{'ours':>9}{'XLA':>9}{'ratio':>8}")
    ratios: dict[str, float] = {}
    for case in cases():
        if options.only not in f"{case.family} {case.name}":
            continue
        arrays = list(case.arguments(np.random.default_rng(0)))
        jitted = jax.jit(case.function, keep_unused=True)
        compiled = ours(str(jitted.lower(*arrays).compiler_ir("stablehlo")))
        on_device = [jax.device_put(one) for one in arrays]
        mine, theirs = compiled(arrays), jax.tree.leaves(jitted(*on_device))
        for a, b in zip(mine, theirs, strict=True):
            given = a.view(bf16) if (bf16 := b.dtype) == ml_dtypes.bfloat16 else a
            expected = np.asarray(b)
            if expected.dtype == ml_dtypes.bfloat16:
                given, expected = given.astype(np.float32), expected.astype(np.float32)
            scale = max(1.0, float(np.abs(expected).max()))
            tolerance = 2e-2 if b.dtype == ml_dtypes.bfloat16 else 2e-4
            assert np.allclose(given, expected, rtol=tolerance, atol=tolerance * scale), case.name
        times = in_turn(
            [
                lambda compiled=compiled, arrays=arrays: compiled(arrays),
                lambda jitted=jitted, given=on_device: jax.block_until_ready(jitted(*given)),
            ],
            options.seconds,
        )
        ratios[case.name] = times[1] / times[0]
        print(f"{case.name:<48}{times[0] * 1e3:9.3f}{times[1] * 1e3:9.3f}{ratios[case.name]:8.2f}", flush=True)
    if options.worst:
        for name, ratio in sorted(ratios.items(), key=lambda one: one[1]):
            print(f"{ratio:8.2f}  {name}")
    if ratios:
        values = ratios.values()
        print(f"geometric mean {geometric_mean(values):.2f}, smallest {min(values):.2f} of {len(ratios)} cases")


if __name__ == "__main__":
    main()
