# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the bytes that a device receives in programs from JAX, and of their results, for both targets."""

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
Window = Sequence[int]
ENGINES = {"shard": "mpi", "stablehlo": "pjrt"}


def floats(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape).astype(np.float32)


def check(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    mesh: Mapping[str, int],
    specs: Sequence[Any],
    received: int | Mapping[str, int],
    **others: Any,
) -> None:
    """Compares the bytes that a device receives with those expected, of all targets or by target, and the results."""
    program = ms.from_jax(function, *arguments, mesh=ms.Mesh(mesh), in_shardings=tuple(specs), **others)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for target in ("shard", "stablehlo"):
        found = program.partition(target).communication
        expected = received if isinstance(received, int) else received[target]
        assert found.bytes_received == expected, f"{target}: {found}"
        with program.compile(ENGINES[target], collectives=target) as compiled:
            for got, one in zip(jax.tree.leaves(compiled(*arguments)), wanted, strict=True):
                np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)


def windows_of(x: Any, size: int) -> Any:
    b, h, w, c = x.shape
    x = x.reshape(b, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, size * size, c)


def image_of(windows: Any, size: int, shape: Sequence[int]) -> Any:
    b, h, w, c = shape
    x = windows.reshape(b, h // size, w // size, size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(shape)


def window_attention(x: Any, mix: Any, bias: Any, heads: int, mask: Any = None) -> Any:
    """Returns the attention of Swin's blocks within windows of 4 x 4 pixels."""
    c, parts = x.shape[-1], windows_of(x, 4)
    count, size, _ = parts.shape
    q, k, v = (parts @ mix).reshape(count, size, 3, heads, c // heads).transpose(2, 0, 3, 1, 4)
    scores = jnp.einsum("nhqd,nhkd->nhqk", q, k) + bias
    if mask is not None:
        scores = scores.reshape(len(x), -1, heads, size, size) + mask[None, :, None]
        scores = scores.reshape(-1, heads, size, size)
    mixed = jnp.einsum("nhqk,nhkd->nhqd", jax.nn.softmax(scores), v).transpose(0, 2, 1, 3)
    return image_of(mixed.reshape(count, size, c), 4, x.shape)


@pytest.mark.parametrize(
    ("mesh", "spec", "shape"),
    [
        pytest.param({"h": 4}, P(None, "h"), (2, 32, 16, 8), id="rows"),
        pytest.param({"h": 2, "w": 2}, P(None, "h", "w"), (2, 16, 16, 8), id="rows and columns"),
        pytest.param({"a": 2, "b": 2, "w": 2}, P(None, ("a", "b"), "w"), (3, 16, 24, 8), id="three axes"),
    ],
)
@pytest.mark.parametrize("is_masked", [False, True])
def test_windows_of_a_batch_that_is_not_sharded(mesh: Any, spec: Any, shape: Sequence[int], is_masked: bool) -> None:
    mix, bias = floats(8, 24) / 8, floats(2, 16, 16)
    mask = floats(shape[1] * shape[2] // 16, 16, 16) if is_masked else None

    def step(x: Any, mix: Any, bias: Any) -> Any:
        return window_attention(x, mix, bias, 2, mask)

    check(step, (floats(*shape), mix, bias), mesh, (spec, P(), P()), 0, out_shardings=spec)


def test_gradient_of_windows_of_a_batch_that_is_not_sharded() -> None:
    x, mix, bias, mask = floats(2, 16, 16, 8), floats(8, 24) / 8, floats(2, 16, 16), floats(16, 16, 16)

    def gradient(x: Any, mix: Any, bias: Any) -> Any:
        return jax.grad(lambda x: jnp.sum(jnp.sin(window_attention(x, mix, bias, 2, mask))))(x)

    spec = P(None, "h", "w")
    check(gradient, (x, mix, bias), {"h": 2, "w": 2}, (spec, P(), P()), 0, out_shardings=spec)


def test_rows_of_windows_that_axes_do_not_divide() -> None:
    mix, bias, x = floats(8, 24) / 8, floats(2, 16, 16), floats(3, 24, 16, 8)
    received = x.nbytes // 4  # The 6 rows of windows are sharded on half of the axis.
    check(lambda x, m, b: window_attention(x, m, b, 2), (x, mix, bias), {"h": 4}, (P(None, "h"), P(), P()), received)


def reduced(combine: Any) -> Callable[[Any], Any]:
    """Returns a function that reduces columns with a combination of two elements whose identity is -inf."""
    return lambda x: jax.lax.reduce(x, np.array(-np.inf, x.dtype), combine, (0,))


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    ("mesh", "spec", "shape"),
    [
        pytest.param({"a": 4}, P("a"), (64, 6), id="one axis"),
        pytest.param({"a": 2, "b": 2}, P(("b", "a")), (48, 6), id="two axes"),
        pytest.param({"a": 4}, P("a"), (4, 6), id="one element each"),
    ],
)
def test_cumulative_log_sum_exp(mesh: Any, spec: Any, shape: Sequence[int], is_reversed: bool) -> None:
    def cumulative(x: Any) -> Any:
        return jax.lax.cumlogsumexp(x, 0, is_reversed)

    check(cumulative, (floats(*shape),), mesh, (spec,), 3 * 6 * 4)


def test_cumulative_log_sum_exp_of_an_uneven_dimension() -> None:
    x, infinity = floats(37, 6), np.array([-np.inf, np.inf], np.float32)
    x[5:7, 0] = infinity
    # With StableHLO's collectives, arguments have even shards, so this one is not sharded.
    check(lambda x: jax.lax.cumlogsumexp(x, 0), (x,), {"a": 4}, (P("a"),), {"shard": 3 * 6 * 4, "stablehlo": 0})


def test_log_sum_exp_of_shards() -> None:
    # The results of the shards are gathered.
    check(reduced(jnp.logaddexp), (floats(64, 6),), {"a": 4}, (P("a"),), 3 * 6 * 4)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_cumulative_log_sum_exp_of_narrow_floats(kind: str) -> None:
    x = floats(32, 4).astype(jnp.dtype(kind))
    program = ms.from_jax(lambda x: jax.lax.cumlogsumexp(x, 0), x, mesh=ms.Mesh({"a": 4}), in_shardings=(P("a"),))
    wanted = jax.lax.cumlogsumexp(x.astype(np.float32), 0)
    for target in ("shard", "stablehlo"):
        assert program.partition(target).communication.bytes_received == 3 * 4 * 2
        with program.compile(ENGINES[target], collectives=target) as compiled:
            np.testing.assert_allclose(np.asarray(compiled(x)).astype(np.float32), wanted, rtol=0.05, atol=0.05)


def pool(size: int, stride: int, padding: str, start: float, combine: Any) -> Callable[[Any], Any]:
    """Returns a pool of images of shape (batch, height, width, channel)."""
    return lambda x: jax.lax.reduce_window(x, start, combine, (1, size, size, 1), (1, stride, stride, 1), padding)


@pytest.mark.parametrize(
    ("mesh", "spec"),
    [
        pytest.param({"h": 4}, P(None, "h"), id="rows"),
        pytest.param({"h": 2, "w": 2}, P(None, "h", "w"), id="rows and columns"),
    ],
)
@pytest.mark.parametrize(
    ("size", "stride", "padding", "rows", "both"),
    [
        # The pool receives a row of 2 x 12 x 3 floats, and so does its gradient, from which one of updates comes back.
        pytest.param(3, 2, "VALID", 3, (1656, 1104), id="3 by 2"),
        pytest.param(2, 1, "VALID", 3, (1656, 1104), id="2 by 1"),
        # Shards of 8 rows are shifted to those of 9 that windows advance by, and back.
        pytest.param(2, 3, "VALID", 8, (720, 432), id="2 by 3"),
        pytest.param(3, 3, "SAME", 6, (864, 576), id="3 by 3"),
    ],
)
def test_gradient_of_max_pool(
    mesh: Any, spec: Any, size: int, stride: int, padding: str, rows: int, both: Sequence[int]
) -> None:
    of = pool(size, stride, padding, -np.inf, jax.lax.max)
    received = both if "w" in mesh else (rows * 2 * 12 * 3 * 4,) * 2
    expected = dict(zip(("shard", "stablehlo"), received, strict=True))
    check(jax.grad(lambda x: jnp.sum(jnp.sin(of(x)))), (floats(2, 32, 12, 3),), mesh, (spec,), expected)


@pytest.mark.parametrize(
    ("size", "stride", "padding", "rows", "received"),
    [
        pytest.param(2, 2, "VALID", 48, 0, id="2 by 2"),
        pytest.param(4, 4, "VALID", 48, 0, id="4 by 4"),
        # With StableHLO's collectives, the image has two shards and the updates, of 19 rows, have one.
        pytest.param(2, 2, "VALID", 38, {"shard": 0, "stablehlo": 312}, id="2 by 2, uneven"),
        # One row of 2 x 6 x 3 floats.
        pytest.param(3, 2, "SAME", 48, 2 * 6 * 3 * 4, id="3 by 2"),
    ],
)
def test_gradient_of_average_pool(size: int, stride: int, padding: str, rows: int, received: Any) -> None:
    of = pool(size, stride, padding, 0.0, jax.lax.add)
    x = floats(2, rows, 12, 3)
    updates, spec = floats(*jax.eval_shape(of, x).shape), P(None, "h")
    check(lambda x, updates: jax.vjp(of, x)[1](updates)[0], (x, updates), {"h": 4}, (spec, spec), received)


def kernel_gradient(convolve: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of the images, the kernel and updates of a convolution."""
    return lambda x, kernel, updates: jax.vjp(lambda kernel: convolve(x, kernel), kernel)[1](updates)[0]


def all_reduced(kernel: np.ndarray, devices: int) -> int:
    return 2 * (devices - 1) * kernel.nbytes // devices


@pytest.mark.parametrize(
    ("mesh", "spec", "halos"),
    [
        # A row of 2 x 16 x 3 floats from each neighbor.
        pytest.param({"h": 4}, P(None, "h"), (768, 768), id="rows"),
        # With `shard`, halos of axes of two devices are sent both ways; columns have the halo of rows.
        pytest.param({"h": 2, "w": 2}, P(None, "h", "w"), (1248, 624), id="rows and columns"),
    ],
)
def test_kernel_gradient_of_transposed_convolution(mesh: Any, spec: Any, halos: Sequence[int]) -> None:
    def convolve(x: Any, kernel: Any) -> Any:
        return jax.lax.conv_transpose(x, kernel, (2, 2), "SAME")

    x, kernel, updates = floats(2, 32, 16, 3), floats(4, 4, 3, 5), floats(2, 64, 32, 5)
    received = {name: all_reduced(kernel, 4) + one for name, one in zip(("shard", "stablehlo"), halos, strict=True)}
    check(kernel_gradient(convolve), (x, kernel, updates), mesh, (spec, P(), spec), received)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_kernel_gradient_of_depthwise_convolution(multiplier: int, stride: int) -> None:
    def convolve(x: Any, kernel: Any) -> Any:
        of = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=of, feature_group_count=4
        )

    x, kernel = floats(2, 32, 16, 4), floats(3, 3, 1, 4 * multiplier)
    updates = floats(*jax.eval_shape(convolve, x, kernel).shape)
    # A row of 2 x 16 x 4 floats from each neighbor; none from the one before if the windows advance by two.
    halos = (2 if stride == 1 else 1) * 2 * 16 * 4 * 4
    specs = P(None, "h"), P(), P(None, "h")
    check(kernel_gradient(convolve), (x, kernel, updates), {"h": 4}, specs, all_reduced(kernel, 4) + halos)


@pytest.mark.parametrize(
    ("rows", "stride", "padding", "received"),
    [
        # Halos of one or two rows of 2 x 16 x 3 floats, and the sum of the kernels.
        pytest.param(48, 2, "VALID", {"shard": 812 + 384, "stablehlo": 812 + 384}, id="3 by 2"),
        pytest.param(48, 1, "VALID", {"shard": 812 + 768, "stablehlo": 812 + 768}, id="3 by 1"),
        pytest.param(46, 1, "SAME", {"shard": 812 + 768, "stablehlo": 924}, id="3 by 1, uneven"),
    ],
)
def test_kernel_gradient_of_uneven_windows(rows: int, stride: int, padding: str, received: Mapping[str, int]) -> None:
    def convolve(x: Any, kernel: Any) -> Any:
        of = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=of)

    x, kernel = floats(2, rows, 16, 3), floats(3, 3, 3, 5)
    updates = floats(*jax.eval_shape(convolve, x, kernel).shape)
    specs = P(None, "h"), P(), P(None, "h" if padding == "SAME" else None)
    check(kernel_gradient(convolve), (x, kernel, updates), {"h": 4}, specs, received)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize(
    ("mesh", "batch", "sequence", "length"),
    [
        pytest.param({"d": 2, "s": 2}, "d", "s", 32, id="batch and sequence"),
        pytest.param({"s": 2, "t": 2}, None, ("s", "t"), 32, id="two axes"),
        pytest.param({"s": 4}, None, "s", 30, id="uneven"),
    ],
)
def test_updates_at_positions_of_a_batch(mesh: Any, batch: Any, sequence: Any, length: int, steps: int) -> None:
    def update(cache: Any, keys: Any, positions: Any) -> Any:
        def of_one(cache: Any, keys: Any, start: Any) -> Any:
            return jax.lax.dynamic_update_slice(cache, keys, (start, 0))

        return jax.vmap(of_one)(cache, keys, positions)

    # Within a shard, across the boundary of two, and too far at the end.
    positions = np.array([0, length // 4 - 1, length - 2, length + 5], np.int32)
    arguments = floats(4, length, 6), floats(4, steps, 6), positions
    spec = P(batch, sequence)
    check(update, arguments, mesh, (spec, P(batch), P(batch)), 0, out_shardings=spec)


@pytest.mark.parametrize("mode", ["drop", "clip"])
def test_windows_of_a_scatter(mode: str) -> None:
    numbers = jax.lax.ScatterDimensionNumbers((0, 2), (), (1, 0))

    def add(x: Any, indices: Any, updates: Any) -> Any:
        return jax.lax.scatter_add(x, indices, updates, numbers, mode=mode)

    # The first windows are inside of the array, and the others are not.
    indices = np.array([[0, 0], [3, 2], [9, 14], [5, 7], [11, 3], [-1, 3], [4, 15]], np.int32)
    check(add, (floats(16, 12), indices, floats(3, 7, 2)), {"a": 2, "b": 2}, (P("a", "b"), P(), P()), 0)


def of_shape(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


def stencil(u: Any) -> Any:
    for _ in range(2):
        u = u + 0.1 * sum(jnp.roll(u, by, dim) - u for dim in range(3) for by in (1, -1))
    return u


def shifted(tokens: Any) -> Any:
    return jnp.pad(tokens, ((0, 0), (1, 0), (0, 0)))[:, :-1]


def guided(x: Any, w: Any) -> Any:
    one, other = jnp.split(jnp.tanh(jnp.concatenate([x, x * 0.5]) @ w), 2)
    return other + 7.5 * (one - other)


def gates(x: Any, bias: Any) -> Any:
    i, f, g, o = jnp.split(x + bias, 4, -1)
    return jax.nn.sigmoid(f) * 0.5 + jax.nn.sigmoid(i) * jnp.tanh(g), jax.nn.sigmoid(o)


def gated(x: Any, w: Any, out: Any) -> Any:
    gate, up = jnp.split(x @ w, 2, -1)
    return (jax.nn.silu(gate) * up) @ out


CUBE, ROWS = {"x": 4, "y": 4, "z": 4}, {"x": 8}
MODEL = {"data": 2, "tensor": 4}
PARTS = {
    "stencil": (stencil, [of_shape(256, 256, 256)], CUBE, [P("x", "y", "z")], 196_608),
    "shifted tokens": (shifted, [of_shape(8, 4096, 64)], ROWS, [P(None, "x")], 2_048),
    "joined": (lambda u, v: jnp.concatenate([u, v]), [of_shape(4096, 64)] * 2, ROWS, [P("x")] * 2, 262_144),
    "split": (lambda u: sum(jnp.split(u, 2)), [of_shape(4096, 64)], ROWS, [P("x")], 131_072),
    "guided": (guided, [of_shape(512, 1024), of_shape(1024, 1024)], ROWS, [P("x"), P()], 1_048_576),
    "gates": (
        gates,
        [of_shape(4, 256, 4096), of_shape(4096)],
        MODEL,
        [P("data", None, "tensor"), P("tensor")],
        1_572_864,
    ),
    "gated": (
        gated,
        [of_shape(4096, 1024), of_shape(1024, 8192), of_shape(4096, 1024)],
        MODEL,
        [P("data"), P(None, "tensor"), P("tensor")],
        20_971_520,
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_rotations_and_parts_of_large_tensors(name: str) -> None:
    function, arguments, mesh, specs, received = PARTS[name]
    program = ms.from_jax(function, *arguments, mesh=ms.Mesh(mesh), in_shardings=tuple(specs))
    for target in ENGINES:
        assert program.partition(target).communication.bytes_received == received
