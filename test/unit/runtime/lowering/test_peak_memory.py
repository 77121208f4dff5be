# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the predicted memory of small programs, computed by hand."""

from __future__ import annotations

import pytest
from runtime import in_process
from small_programs import loop, product

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.lowering.peak_memory import peak_bytes
from mlir_shard.runtime.program import Program

MIB = 2**20
SQUARE = "tensor<512x512xf32>"  # 1 MiB


def compiled(body: str, functions: str = "") -> Program:
    text = f"func.func @main(%x: {SQUARE}) -> {SQUARE} {{\n{body}\n}}\n{functions}"
    module = mlir_shard.parse(text, mlir_shard.create_context())
    return compile_module(module, with_unsharded=False, lower=in_process.lower_whole).sharded


CHAIN = "\n".join(
    [
        product("a", "x", square=SQUARE),
        product("b", "a", square=SQUARE),
        product("c", "b", square=SQUARE),
        f"return %c : {SQUARE}",
    ]
)
LOOP = loop(SQUARE)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"%y = stablehlo.add %x, %x : {SQUARE}\nreturn %y : {SQUARE}", 2, id="argument and result"),
        pytest.param(CHAIN, 3, id="of a chain, two products at once"),
        pytest.param(LOOP, 3, id="of a loop, what goes in and comes out of an iteration"),
    ],
)
def test_squares_that_are_held_at_once(body: str, expected: int) -> None:
    predicted = compiled(body).peak_bytes

    # The counters of loops are scalars, which also need memory.
    assert predicted is not None
    assert expected * MIB <= predicted < (expected + 0.01) * MIB


def test_a_function_that_calls_itself_has_no_known_peak() -> None:
    with mlir_shard.create_context():
        module = ir.Module.parse("""
          func.func @main(%x: memref<3xf32>) { func.call @main(%x) : (memref<3xf32>) -> () return }""")
        assert peak_bytes(module, "main") is None


@pytest.mark.parametrize(("element", "size"), [("i8", 1), ("f32", 4), ("f64", 8), ("index", 8), ("complex<f64>", 16)])
def test_buffers_by_their_elements(element: str, size: int) -> None:
    with mlir_shard.create_context():
        module = ir.Module.parse(f"""func.func @main(%x: memref<3x4x{element}>) {{
          %0 = memref.alloc() : memref<5x{element}>
          memref.dealloc %0 : memref<5x{element}>
          %1 = memref.alloc() : memref<7x{element}>
          return
        }}""")
        assert peak_bytes(module, "main") == (12 + 7) * size


def test_calls_hold_what_their_functions_do() -> None:
    function = f"func.func private @f(%x: {SQUARE}) -> {SQUARE} attributes {{no_inline}} {{\n{CHAIN}\n}}"
    call = f"%y = call @f(%x) : ({SQUARE}) -> {SQUARE}\n{product('z', 'y', square=SQUARE)}\nreturn %z : {SQUARE}"

    assert compiled(call, function).peak_bytes == 3 * MIB
