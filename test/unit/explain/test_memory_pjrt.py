# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the memory that a PJRT device needs, as far as it depends on the fusions and copies of XLA."""

from __future__ import annotations

from typing import Any

from small_programs import BYTES, SQUARE, loop, main, of, product, returned, unary


def test_xla_computes_elementwise_results_in_place() -> None:
    body = "\n".join([product("a", "x"), unary("b", "exponential", "a"), product("c", "b"), returned("c")])

    # The result is allocated from the start. Its buffer holds `a` and `b` before the result is computed.
    assert of(main(body), "pjrt").temporaries == BYTES
    assert of(main(body), "mpi").temporaries == 2 * BYTES


def test_equal_instructions_and_unused_ones_have_no_memory() -> None:
    body: list[Any] = [
        product("a", "x"),
        product("b", "x"),
        product("unused", "x"),
        product("c", "a", "b"),
        returned("c"),
    ]

    assert of(main("\n".join(body)), "pjrt").peak == 3 * BYTES


def test_weights_that_are_transposed_for_a_product_have_no_copy_in_xla() -> None:
    body = f"""
      %t = stablehlo.transpose %x, dims = [1, 0] : ({SQUARE}) -> {SQUARE}
      {product("a", "x", "t")}
      {returned("a")}"""

    assert of(main(body), "pjrt").peak == 2 * BYTES
    assert of(main(body), "mpi").peak == 3 * BYTES


def test_heads_of_attention_are_copied_for_a_product_in_xla() -> None:
    heads = "tensor<2x8x4x16xf32>"
    body = f"""
      %a = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        : ({heads}, {heads}) -> tensor<2x4x8x8xf32>
      return %a : tensor<2x4x8x8xf32>"""
    found = of(main(body, f"%q: {heads}, %k: {heads}", "tensor<2x4x8x8xf32>"), "pjrt")

    # There are two temporaries of 4 KiB; the result has 2 KiB.
    assert found.temporaries == 2 * 4096


def test_what_a_loop_reads_too_late_is_copied_in_xla() -> None:
    late = loop().replace(product("w", "v"), f"{product('u', 'v')}\n%w = stablehlo.add %u, %v : {SQUARE}")

    # The temporaries are the product and the next value, which is computed in place.
    assert 3 * BYTES <= of(main(late), "pjrt").peak < 3.2 * BYTES


def test_large_reductions_take_in_what_only_they_read() -> None:
    wide, row = "tensor<64x128xf32>", "tensor<64xf32>"

    def reduced(op: str) -> str:
        return f"""
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %a = stablehlo.{op} : {wide}
          %r = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
            : ({wide}, tensor<f32>) -> {row}
          return %r : {row}"""

    assert of(main(reduced("exponential %x"), f"%x: {wide}", row), "pjrt").temporaries == 0
    # XLA's library has no function for remainders.
    assert of(main(reduced("remainder %x, %x"), f"%x: {wide}", row), "pjrt").temporaries == 64 * 128 * 4
