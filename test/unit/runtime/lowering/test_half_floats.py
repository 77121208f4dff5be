# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of f16 and bf16 for this machine and for CPUs without instructions for either: each op is rounded."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from runtime.in_process import lower, run

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.cpu import CPUS, NATIVE, Cpu
from mlir_shard.runtime.lowering import external_symbols

Array = npt.NDArray[Any]
DTYPES: dict[str, Any] = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
# x86-64-v2 has no instructions that convert f16, and x86-64-v3 has none that convert bf16.
BASELINES = (NATIVE, "x86-64-v2", "x86-64-v3")

SPECIAL = np.concatenate(
    [
        np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e30, 3.3895e38], np.float32),
        # Numbers near the largest f16, subnormal numbers of f16, ties, and subnormal numbers of f32.
        np.array([65504.0, 65519.99, 65520.0, -65536.0, 2.0**-14, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25], np.float32),
        np.array([3 * 2.0**-25, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 2.0**-126, 2.0**-149], np.float32),
    ]
)


def every_pattern(dtype: Any) -> Array:
    return np.arange(2**16, dtype=np.uint16).view(dtype)


def assert_same(found: Array, expected: Array) -> None:
    """Asserts that bits are equal, except that any NaN equals any other."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(found[there].view(np.uint8), expected[there].view(np.uint8))


def program(body: str, *types: str) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in zip("ab", types[:-1], strict=False))
    return f"func.func @main({arguments}) -> {types[-1]} {{\n{body}\n  return %0 : {types[-1]}\n}}"


@pytest.mark.parametrize("cpu", BASELINES)
@pytest.mark.parametrize("element_type", DTYPES)
def test_conversions_are_exact(element_type: str, cpu: str) -> None:
    dtype = DTYPES[element_type]
    patterns = every_pattern(dtype)
    random = np.random.default_rng(0).integers(0, 2**32, 2**16, np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        between = patterns.astype(np.float32) * np.float32(1 + 2.0**-12)
    wide = np.concatenate([SPECIAL, random, between])
    of, to = f"tensor<{len(patterns)}x{element_type}>", f"tensor<{len(patterns)}xf32>"
    (extended,) = run(program(f"  %0 = stablehlo.convert %a : ({of}) -> {to}", of, to), patterns, cpu=cpu)
    assert_same(extended, patterns.astype(np.float32))
    of, to = f"tensor<{len(wide)}xf32>", f"tensor<{len(wide)}x{element_type}>"
    (rounded,) = run(program(f"  %0 = stablehlo.convert %a : ({of}) -> {to}", of, to), wide, cpu=cpu)
    with np.errstate(over="ignore", invalid="ignore"):
        assert_same(rounded, wide.astype(dtype))


@pytest.mark.parametrize("cpu", BASELINES)
@pytest.mark.parametrize("element_type", DTYPES)
def test_each_operation_is_rounded(element_type: str, cpu: str) -> None:
    # a * b + a - b, in which a sum in f32 would keep more digits.
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal(4096).astype(DTYPES[element_type]) for _ in range(2))
    type_ = f"tensor<4096x{element_type}>"
    body = "\n".join(
        f"  %{result} = stablehlo.{name} {left}, {right} : {type_}"
        for result, name, left, right in [
            ("1", "multiply", "%a", "%b"),
            ("2", "add", "%1", "%a"),
            ("3", "subtract", "%2", "%b"),
            ("4", "divide", "%3", "%a"),
            ("0", "maximum", "%4", "%b"),
        ]
    )
    (found,) = run(program(body, type_, type_, type_), a, b, cpu=cpu)
    assert_same(found, np.maximum((a * b + a - b) / a, b))


@pytest.mark.parametrize("element_type", DTYPES)
def test_functions_comparisons_and_integers(element_type: str) -> None:
    dtype = DTYPES[element_type]
    x = np.random.default_rng(2).standard_normal(512).astype(dtype)
    type_, truth = f"tensor<512x{element_type}>", "tensor<512xi1>"
    body = f"""
  %1 = stablehlo.exponential %a : {type_}
  %2 = stablehlo.convert %1 : ({type_}) -> tensor<512xi32>
  %3 = stablehlo.convert %2 : (tensor<512xi32>) -> {type_}
  %4 = stablehlo.compare LT, %1, %3 : ({type_}, {type_}) -> {truth}
  %5 = stablehlo.compare EQ, %1, %1 : ({type_}, {type_}) -> {truth}
  %6 = stablehlo.xor %4, %5 : {truth}
  %0 = stablehlo.select %6, %1, %3 : {truth}, {type_}"""
    (found,) = run(program(body, type_, type_), x, cpu="x86-64-v2")
    np.testing.assert_allclose(
        found.astype(np.float32), np.exp(x.astype(np.float32)).astype(dtype).astype(np.float32), rtol=1e-2
    )


@pytest.mark.parametrize("cpu", CPUS)
def test_no_library_is_called_for_half_floats(cpu: str) -> None:
    """The code for each CPU calls no conversion functions such as `__truncsfbf2`, so that no machine needs them."""
    element = "tensor<4x4x{0}>"
    for element_type in DTYPES:
        type_ = element.format(element_type)
        body = f"  %1 = stablehlo.dot %a, %a : ({type_}, {type_}) -> {type_}\n  %0 = stablehlo.tanh %1 : {type_}"
        (lowered,) = lower([program(body, type_, type_)], "main", cpu)
        assert ("target_cpu" in lowered) == (cpu != NATIVE)
        assert "__truncsf" not in lowered


@pytest.mark.parametrize(
    ("arithmetic", "what", "symbol"),
    [
        ("%0 = llvm.fptrunc %a : f32 to bf16", "'llvm.fptrunc' needs", "__truncsfbf2"),
        ("%h = llvm.fptrunc %a : f32 to f16\n  %0 = llvm.fpext %h : f16 to f32", "'llvm.fpext' needs", "__extendhfsf2"),
        ("%i = llvm.fptosi %a : f32 to i128\n  %0 = llvm.sdiv %i, %i : i128", "'llvm.sdiv' needs", "__divti3"),
        ("%0 = llvm.call @absent_here(%a) : (f32) -> f32", "this calls", "absent_here"),
    ],
    ids=["bf16", "f16", "i128", "call"],
)
def test_what_needs_a_missing_symbol_is_named(arithmetic: str, what: str, symbol: str) -> None:
    text = f"llvm.func @absent_here(f32) -> f32\nllvm.func @main(%a: f32) {{\n  {arithmetic}\n  llvm.return\n}}"
    module = ir.Module.parse(text, create_context())
    is_here = hasattr(ctypes.CDLL(None), symbol)
    named = []
    try:
        with module.context, ir.Location.unknown():
            external_symbols.check(module, Cpu("x86-64-v2"))
    except RunError as error:
        named = [str(one) for one in error.diagnostics]
    assert any(f"{what} '{symbol}', which no available library defines" in one for one in named) != is_here


def test_a_cpu_that_is_none_is_an_error() -> None:
    with pytest.raises(RunError, match="unknown CPU 'zen9': choose native, x86-64, x86-64-v2, x86-64-v3 or"):
        Cpu("zen9")
