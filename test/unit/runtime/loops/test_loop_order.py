# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of transposes in tiles, reductions in parts and in f32, functions on vectors, and early freeing of memory."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from runtime.in_process import lower, run

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.launch.cpu import CPUS, NATIVE, Cpu
from mlir_shard.runtime.launch.libraries import vector_math
from mlir_shard.runtime.lowering.loops import loop_order

RANDOM = np.random.default_rng(3)
DTYPES: dict[str, Any] = {
    **{
        "f32": np.float32,
        "f64": np.float64,
        "i8": np.int8,
        "i16": np.int16,
        "bf16": ml_dtypes.bfloat16,
        "i1": np.bool_,
    },
    "complex<f32>": np.complex64,
}


def unary(op: str, shape: tuple[int, ...], type_: str, result: tuple[int, ...] | None = None, before: str = "") -> str:
    of_argument, of_result = ("x".join(map(str, (*one, type_))) for one in (shape, shape if result is None else result))
    return f"""
      func.func @main(%a: tensor<{of_argument}>) -> tensor<{of_result}> {{
        {before}
        %0 = {op} : (tensor<{of_argument}>) -> tensor<{of_result}>
        return %0 : tensor<{of_result}>
      }}"""


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("type_", DTYPES)
@pytest.mark.parametrize(
    ("shape", "order"),
    [((64, 128), (1, 0)), ((67, 83), (1, 0)), ((3, 37, 5, 32), (0, 3, 2, 1)), ((40, 3, 65), (2, 1, 0))],
)
def test_transposes(shape: tuple[int, ...], order: tuple[int, ...], type_: str, cpu: str) -> None:
    """Transposes cover full tiles, remainders at edges, and surrounding dimensions, for registers of each size."""
    x = RANDOM.integers(0, 2, shape).astype(DTYPES[type_])
    (found,) = run(
        unary(
            f"stablehlo.transpose %a, dims = [{', '.join(map(str, order))}]",
            shape,
            type_,
            tuple(shape[one] for one in order),
        ),
        x,
        cpu=cpu,
    )
    np.testing.assert_array_equal(found, x.transpose(order))


@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
def test_sums(type_: str, axis: tuple[int, ...]) -> None:
    """Sums of f32 and f64 are close to the exact ones, and those of bf16 are rounded once."""
    x = RANDOM.uniform(0, 1, (33, 40, 65)).astype(DTYPES[type_])
    kept = tuple(size for dim, size in enumerate(x.shape) if dim not in axis)
    reduce = f"stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [{', '.join(map(str, axis))}]"
    of_argument, of_result = ("x".join(map(str, (*one, type_))) for one in (x.shape, kept))
    (found,) = run(
        f"""
      func.func @main(%a: tensor<{of_argument}>) -> tensor<{of_result}> {{
        %z = stablehlo.constant dense<0.0> : tensor<{type_}>
        %0 = {reduce} : (tensor<{of_argument}>, tensor<{type_}>) -> tensor<{of_result}>
        return %0 : tensor<{of_result}>
      }}""",
        x,
    )
    tolerance = {"f32": 1e-5, "f64": 1e-13, "bf16": 2**-8}[type_]
    np.testing.assert_allclose(found.astype(np.float64), x.astype(np.float64).sum(axis), rtol=tolerance)


def test_the_largest_of_bf16_is_exact() -> None:
    x = RANDOM.standard_normal((17, 100)).astype(ml_dtypes.bfloat16)
    (found,) = run(
        """
      func.func @main(%a: tensor<17x100xbf16>) -> tensor<17xbf16> {
        %z = stablehlo.constant dense<0xFF80> : tensor<bf16>
        %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [1]
          : (tensor<17x100xbf16>, tensor<bf16>) -> tensor<17xbf16>
        return %0 : tensor<17xbf16>
      }""",
        x,
    )
    np.testing.assert_array_equal(found.astype(np.float32), x.astype(np.float32).max(1))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("exponential", np.exp),
        ("exponential_minus_one", np.expm1),
        ("tanh", np.tanh),
        ("cosine", np.cos),
        ("log_plus_one", lambda x: np.log1p(x)),
        ("cbrt", np.cbrt),
    ],
)
def test_functions_on_vectors(op: str, function: Any, type_: str, cpu: str) -> None:
    """Functions are within 8 units in the last place, for elements in vectors and for the remaining ones."""
    x = RANDOM.uniform(-0.9, 3, 1003).astype(DTYPES[type_])
    x[:4] = [0, -0.0, np.inf, np.nan]
    (found,) = run(unary(f"stablehlo.{op} %a", x.shape, type_), x, cpu=cpu)
    with np.errstate(invalid="ignore"):
        expected = function(x.astype(np.longdouble)).astype(x.dtype)
    np.testing.assert_array_max_ulp(found[4:], expected[4:], maxulp=8)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-6)


def test_without_the_library_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    vector_math._variants.cache_clear()
    monkeypatch.setattr(vector_math, "_library", lambda: None)
    x = RANDOM.standard_normal(100).astype(np.float32)
    (found,) = run(unary("stablehlo.tanh %a", x.shape, "f32"), x)
    vector_math._variants.cache_clear()
    np.testing.assert_allclose(found, np.tanh(x), rtol=1e-6)


def test_concatenation_of_three() -> None:
    a, b = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 5), (3, 2, 5)))
    (found,) = run(
        """
      func.func @main(%a: tensor<3x4x5xf32>, %b: tensor<3x2x5xf32>) -> tensor<3x8x5xf32> {
        %0 = stablehlo.concatenate %b, %a, %b, dim = 1
          : (tensor<3x2x5xf32>, tensor<3x4x5xf32>, tensor<3x2x5xf32>) -> tensor<3x8x5xf32>
        return %0 : tensor<3x8x5xf32>
      }""",
        a,
        b,
    )
    np.testing.assert_array_equal(found, np.concatenate([b, a, b], 1))


def test_memory_is_freed_after_its_last_use() -> None:
    """A chain of transposes has at most a few results in memory at once, whatever its length."""
    lines = [
        f"%v{i + 1} = stablehlo.transpose %v{i}, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        f"%w{i + 1} = stablehlo.dot %v{i + 1}, %v{i} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
        for i in range(8)
    ]
    body = "\n".join(line.replace(f"%v{i}", f"%w{i}") if i else line for i, line in enumerate(lines))
    text = f"func.func @main(%v0: tensor<8x8xf32>) -> tensor<8x8xf32> {{\n{body}\nreturn %w8 : tensor<8x8xf32>\n}}"
    (lowered,) = lower([text], "main")
    live = most = 0
    for line in lowered.splitlines():
        live += ("llvm.call @malloc" in line) - ("llvm.call @free" in line)
        most = max(most, live)
    assert 0 < most <= 5


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("target", list(permutations(range(3))))
def test_copies_along_any_loops(target: tuple[int, ...], cpu: str) -> None:
    """A copy with any order of loops in the target, from a source with some of the loops, in any order.

    Only those with two loops that both operands have, each contiguous in one of them, are transposed in registers.
    """
    sizes = (17, 24, 40)

    def type_of(loops: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(str(sizes[loop]) for loop in loops)}xf32>"

    def map_of(loops: tuple[int, ...]) -> str:
        return f"affine_map<(d0, d1, d2) -> ({', '.join(f'd{loop}' for loop in loops)})>"

    sources = [loops for count in (1, 2, 3) for loops in permutations(range(3), count)]
    made = "".join(
        f"""
        %e{number} = tensor.empty() : {type_of(target)}
        %r{number} = linalg.generic {{indexing_maps = [{map_of(source)}, {map_of(target)}],
            iterator_types = ["parallel", "parallel", "parallel"]}}
            ins(%a{number} : {type_of(source)}) outs(%e{number} : {type_of(target)}) {{
        ^bb0(%x: f32, %y: f32):
          linalg.yield %x : f32
        }} -> {type_of(target)}"""
        for number, source in enumerate(sources)
    )
    arguments = ", ".join(f"%a{number}: {type_of(source)}" for number, source in enumerate(sources))
    types = ", ".join([type_of(target)] * len(sources))
    results = ", ".join(f"%r{number}" for number in range(len(sources)))
    text = f"func.func @main({arguments}) -> ({types}) {{{made}\n        return {results} : {types}\n      }}"
    inputs = [RANDOM.standard_normal([sizes[loop] for loop in source]).astype(np.float32) for source in sources]
    for source, array, found in zip(sources, inputs, run(text, *inputs, cpu=cpu), strict=True):
        letters = "ijk"
        ones = [np.ones(size, np.float32) for size in sizes]
        subscripts = ",".join(["".join(letters[loop] for loop in source), *letters])
        wanted = np.einsum(f"{subscripts}->{''.join(letters[loop] for loop in target)}", array, *ones)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{source} to {target}")


@pytest.mark.parametrize("size", [64, 100])
def test_a_sum_with_its_own_transpose(size: int) -> None:
    """One operand is read at two positions."""
    text = f"""
      func.func @main(%x: tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32> {{
        %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
        %1 = stablehlo.subtract %x, %0 : tensor<{size}x{size}xf32>
        return %1 : tensor<{size}x{size}xf32>
      }}"""
    x = np.arange(size * size, dtype=np.float32).reshape(size, size)
    np.testing.assert_array_equal(run(text, x)[0], x - x.T)


@pytest.mark.parametrize(
    ("operand", "expected"),
    [
        # Both operands are traversed column by column: the loops are interchanged.
        ("memref<64x48xf32>", "affine_map<(d0, d1) -> (d0, d1)>"),
        # The distance of elements is unknown.
        ("memref<64x48xf32, strided<[?, ?], offset: ?>>", "affine_map<(d0, d1) -> (d1, d0)>"),
    ],
)
def test_loops_go_along_memory(operand: str, expected: str) -> None:
    with mlir_shard.create_context():
        module = ir.Module.parse(f"""
          #by_columns = affine_map<(d0, d1) -> (d1, d0)>
          func.func @main(%a: {operand}, %b: memref<64x48xf32>) {{
            linalg.generic {{indexing_maps = [#by_columns, #by_columns], iterator_types = ["parallel", "parallel"]}}
                ins(%a : {operand}) outs(%b : memref<64x48xf32>) {{
            ^bb0(%x: f32, %y: f32):
              %0 = arith.addf %x, %x : f32
              linalg.yield %0 : f32
            }}
            return
          }}""")
        loop_order.arrange(module, Cpu(NATIVE))
        (op,) = operations_named(module, "linalg.generic")
        assert [str(one) for one in op.attributes["indexing_maps"]] == [f"{expected}"] * 2
