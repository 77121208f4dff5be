# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs on square tensors, and their predicted peak memory. Squares have 1 KiB by default."""

from __future__ import annotations

import mlir_shard
from mlir_shard.explain.memory import Engine, PeakMemory, peak_memory

SQUARE = "tensor<16x16xf32>"
BYTES = 1024


def of(text: str, engine: Engine | None = None) -> PeakMemory:
    return peak_memory(mlir_shard.parse(text, mlir_shard.create_context()), engine=engine)


def main(body: str, arguments: str = f"%x: {SQUARE}", results: str = SQUARE) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def product(result: str, of: str, by: str = "", square: str = SQUARE) -> str:
    return f"%{result} = stablehlo.dot %{of}, %{by or of} : ({square}, {square}) -> {square}"


def unary(result: str, op: str, of: str) -> str:
    return f"%{result} = stablehlo.{op} %{of} : {SQUARE}"


def returned(*names: str) -> str:
    return f"return {', '.join(f'%{name}' for name in names)} : {', '.join([SQUARE] * len(names))}"


def loop(square: str = SQUARE) -> str:
    return f"""
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, {square}
  cond {{
    %end = stablehlo.constant dense<5> : tensor<i32>
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    {product("w", "v", square=square)}
    stablehlo.return %next, %w : tensor<i32>, {square}
  }}
  return %n#1 : {square}"""


STAGED = """
  shard.grid @mesh(shape = 4)
  func.func @main(%x: tensor<16x4xf32>) -> tensor<16x16xf32> {
    %y = shard.all_gather %x on @mesh grid_axes = [0] gather_axis = 1 : tensor<16x4xf32> -> tensor<16x16xf32>
    return %y : tensor<16x16xf32>
  }"""
