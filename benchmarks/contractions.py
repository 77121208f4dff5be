# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions and convolutions in local programs of the MPI engine on one core, beside OpenBLAS and XLA:CPU.

    python benchmarks/contractions.py

Each case is a `stablehlo.dot_general` of one rank, and `jax.lax.dot_general` and `numpy.matmul` of the same arrays, or
a convolution by JAX; numpy does not run bf16, i8 and convolutions. All run in this process, in turn, with one thread.
Prints the billions of operations a second, and the ratio of our speed to that of the peer: numpy if it runs the case,
else XLA. The last line contains the geometric mean of the ratios, and the smallest.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from statistics import geometric_mean
from typing import Any

from local_programs import in_turn, ours  # isort: skip

import jax
import ml_dtypes
import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
RESULTS = {"f32": "f32", "f64": "f64", "bf16": "f32", "i8": "i32"}


@dataclass(frozen=True)
class Case:
    """A product of matrices, or of batches of them.

    Attributes:
        element_type: the type of the operands; that of the result is f32 for bf16, and i32 for i8.
        m, n, k: the rows and columns of the result, and the size of the contracted dimension.
        batch: the number of products, 0 for one without a batch dimension.
        transposes: whether each operand is transposed in memory.
    """

    element_type: str
    m: int
    n: int
    k: int
    batch: int = 0
    transposes: tuple[bool, bool] = (False, False)

    @property
    def name(self) -> str:
        """The name of the case in the table."""
        batch = f"{self.batch} of " if self.batch else ""
        letters = "".join(" T"[one] for one in self.transposes).strip() and "".join(
            "NT"[one] for one in self.transposes
        )
        return f"{self.element_type} {batch}{self.m}x{self.k}x{self.n} {letters}".rstrip()

    @property
    def operations(self) -> int:
        """The number of multiplications and additions."""
        return 2 * max(self.batch, 1) * self.m * self.n * self.k

    def shapes(self) -> list[tuple[int, ...]]:
        """Returns the shapes of the two operands in memory."""
        pairs = (self.m, self.k), (self.k, self.n)
        batch = (self.batch,) if self.batch else ()
        return [(*batch, *(pair[::-1] if flip else pair)) for pair, flip in zip(pairs, self.transposes, strict=True)]

    @property
    def contracted(self) -> tuple[int, int]:
        """The contracted dimension of each operand."""
        first = 1 if self.batch else 0
        return first + (not self.transposes[0]), first + self.transposes[1]

    def text(self) -> str:
        """Returns the text of the program."""
        a, b = ("x".join(map(str, (*shape, self.element_type))) for shape in self.shapes())
        shape = (*((self.batch,) if self.batch else ()), self.m, self.n)
        c = "x".join(map(str, (*shape, RESULTS[self.element_type])))
        batching = "batching_dims = [0] x [0], " if self.batch else ""
        left, right = self.contracted
        return f"""
          func.func @main(%a: tensor<{a}>, %b: tensor<{b}>) -> tensor<{c}> {{
            %0 = stablehlo.dot_general %a, %b, {batching}contracting_dims = [{left}] x [{right}]
              : (tensor<{a}>, tensor<{b}>) -> tensor<{c}>
            return %0 : tensor<{c}>
          }}"""


@dataclass(frozen=True)
class Convolution:
    """A convolution with padding, in f32.

    Attributes:
        layout: the layout of input and result; `kernel`: that of the kernel.
        sizes: batch, height, width, channels of the input and of the result.
        window: the height and width of the window.
    """

    layout: str
    kernel: str
    sizes: tuple[int, int, int, int, int]
    window: int
    stride: int = 1
    element_type = "f32"

    @property
    def name(self) -> str:
        """The name of the case in the table."""
        n, h, w, c, d = self.sizes
        return f"{self.layout} {n}x{h}x{w}x{c}->{d} by {self.window}/{self.stride}"

    @property
    def operations(self) -> int:
        """The number of multiplications and additions."""
        return 2 * prod(self.sizes) * self.window**2 // self.stride**2

    def shapes(self) -> list[tuple[int, ...]]:
        """Returns the shapes of the input and the kernel."""
        n, h, w, c, d = self.sizes
        of_input, of_kernel = {"N": n, "H": h, "W": w, "C": c}, {"H": self.window, "W": self.window, "I": c, "O": d}
        return [tuple(of_input[one] for one in self.layout), tuple(of_kernel[one] for one in self.kernel)]

    def convolve(self, x: Any, kernel: Any) -> Any:
        """Computes the convolution by JAX."""
        numbers = (self.layout, self.kernel, self.layout)
        return jax.lax.conv_general_dilated(x, kernel, (self.stride,) * 2, "SAME", dimension_numbers=numbers)

    def text(self) -> str:
        """Returns the text of the program."""
        arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in self.shapes()]
        return str(jax.jit(self.convolve).lower(*arguments).compiler_ir("stablehlo"))


def cases() -> list[Case | Convolution]:
    """Returns products of square, thin, odd, transposed, and batched matrices, and a ResNet's convolutions."""
    found: list[Case | Convolution] = [
        Case(type_, size, size, size) for type_ in ("f32", "f64") for size in (64, 128, 256, 512, 1024, 2048)
    ]
    found += [Case("bf16", size, size, size) for size in (64, 256, 512, 1024)]
    found += [Case("i8", size, size, size) for size in (64, 256, 512)]
    for type_ in ("bf16", "i8"):
        found += [Case(type_, 255, 257, 253), Case(type_, 16, 2048, 2048), Case(type_, 1, 2048, 2048)]
        found += [Case(type_, 2048, 1, 2048), Case(type_, 512, 512, 512, 0, (False, True)), Case(type_, 64, 64, 64, 64)]
    for type_ in ("f32", "f64"):
        found += [Case(type_, 255, 257, 253), Case(type_, 509, 131, 1021), Case(type_, 67, 1009, 71)]
        found += [Case(type_, 2048, 16, 2048), Case(type_, 16, 2048, 2048), Case(type_, 1024, 1024, 16)]
        found += [Case(type_, 1, 2048, 2048), Case(type_, 2048, 1, 2048)]
        found += [Case(type_, 512, 512, 512, 0, forms) for forms in ((True, False), (False, True), (True, True))]
        found += [
            Case(type_, 64, 64, 64, 64),
            Case(type_, 128, 128, 64, 32, (False, True)),
            Case(type_, 16, 16, 16, 512),
        ]
    for layout, kernel in (("NHWC", "HWIO"), ("NCHW", "OIHW")):
        sizes = (8, 56, 56, 64, 64), (8, 28, 28, 128, 128), (8, 14, 14, 256, 256)
        found += [Convolution(layout, kernel, one, 3) for one in sizes]
        found += [Convolution(layout, kernel, (4, 112, 112, 3, 64), 7, 2)]
        found += [Convolution(layout, kernel, (8, 28, 28, 256, 64), 1)]
        found += [Convolution(layout, kernel, (8, 56, 56, 64, 128), 3, 2)]
    return found


def xla(case: Case | Convolution, arrays: list[Any]) -> Callable[[], Any]:
    """Returns a function that computes a case by JAX."""
    on_device = [jax.device_put(one) for one in arrays]
    if isinstance(case, Convolution):
        convolve = jax.jit(case.convolve)
        return lambda: convolve(*on_device).block_until_ready()
    left, right = case.contracted
    batch = ((0,), (0,)) if case.batch else ((), ())
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[RESULTS[case.element_type]]
    dot = jax.jit(lambda a, b: jax.lax.dot_general(a, b, (((left,), (right,)), batch), preferred_element_type=dtype))
    return lambda: dot(*on_device).block_until_ready()


def numpy(case: Case, arrays: list[Any]) -> Callable[[], Any]:
    """Returns a function that computes a case by numpy's OpenBLAS."""
    a, b = (one.swapaxes(-1, -2) if flip else one for one, flip in zip(arrays, case.transposes, strict=True))
    return lambda: np.matmul(a, b)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="at least, for each case")
    parser.add_argument("--only", default="", help="cases with this in their names")
    arguments = parser.parse_args()
    print(f"{'GF/s':<30}{'ours':>8}{'numpy':>8}{'XLA':>8}{'ratio':>8}")
    ratios = []
    for case in cases():
        if arguments.only not in case.name:
            continue
        draw = np.random.default_rng(0)
        arrays = [draw.integers(-8, 8, shape).astype(DTYPES[case.element_type]) for shape in case.shapes()]
        has_numpy = isinstance(case, Case) and case.element_type in ("f32", "f64")
        compiled = ours(case.text())
        sides: list[Callable[[], Any]] = [
            lambda compiled=compiled, arrays=arrays: compiled(arrays)[0],
            xla(case, arrays),
        ]
        if isinstance(case, Case) and has_numpy:
            sides.append(numpy(case, arrays))
        expected, *others = (np.asarray(side(), np.float64) for side in sides)
        assert all(np.allclose(expected, one, rtol=1e-3) for one in others), case.name
        times = in_turn(sides, arguments.seconds)
        speeds = [case.operations / one / 1e9 for one in times]
        ratios.append(speeds[0] / speeds[-1])
        peer = f"{speeds[2]:8.1f}" if has_numpy else f"{'-':>8}"
        print(f"{case.name:<30}{speeds[0]:8.1f}{peer}{speeds[1]:8.1f}{ratios[-1]:8.2f}", flush=True)
    if ratios:
        print(f"geometric mean {geometric_mean(ratios):.2f}, smallest {min(ratios):.2f} of {len(ratios)} cases")


if __name__ == "__main__":
    main()
