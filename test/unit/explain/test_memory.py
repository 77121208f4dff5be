# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a rank needs: small programs added up by hand."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.explain.allocation.buffers import Buffer, into_results, most_live, packed_size
from mlir_shard.explain.memory import Engine, PeakMemory, peak_memory
from mlir_shard.explain.memory_report import report_text

SQUARE = "tensor<16x16xf32>"
BYTES = 1024
ENGINES: tuple[Engine, ...] = ("mpi", "pjrt")


def of(text: str, engine: Engine | None = None) -> PeakMemory:
    return peak_memory(mlir_shard.parse(text, mlir_shard.create_context()), engine=engine)


def main(body: str, arguments: str = f"%x: {SQUARE}", results: str = SQUARE) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"


def product(result: str, of: str, by: str = "") -> str:
    return f"%{result} = stablehlo.dot %{of}, %{by or of} : ({SQUARE}, {SQUARE}) -> {SQUARE}"


def unary(result: str, op: str, of: str) -> str:
    return f"%{result} = stablehlo.{op} %{of} : {SQUARE}"


def returned(*names: str) -> str:
    return f"return {', '.join(f'%{name}' for name in names)} : {', '.join([SQUARE] * len(names))}"


@pytest.mark.parametrize("engine", ENGINES)
def test_arguments_and_result(engine: Engine) -> None:
    found = of(main("\n".join([product("a", "x"), returned("a")])), engine)

    assert (found.arguments, found.results, found.temporaries, found.peak) == (BYTES, BYTES, 0, 2 * BYTES)


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_chain_two_products_live_at_once(engine: Engine) -> None:
    found = of(main("\n".join([product("a", "x"), product("b", "a"), product("c", "b"), returned("c")])), engine)

    assert found.peak == 3 * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_fused_has_no_memory(engine: Engine) -> None:
    chain = [unary("a", "exponential", "x"), unary("b", "negate", "a"), unary("c", "tanh", "b")]

    assert of(main("\n".join([*chain, returned("c")])), engine).peak == 2 * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_views_have_no_memory(engine: Engine) -> None:
    flat = "tensor<256xf32>"
    body = f"""
      {product("a", "x")}
      %b = stablehlo.reshape %a : ({SQUARE}) -> {flat}
      %c = stablehlo.reshape %b : ({flat}) -> {SQUARE}
      {returned("c")}"""

    assert of(main(body), engine).peak == 2 * BYTES


def test_xla_computes_elementwise_results_in_place() -> None:
    body = "\n".join([product("a", "x"), unary("b", "exponential", "a"), product("c", "b"), returned("c")])

    # The result is there from the beginning, and holds `a` and `b` before they are used.
    assert of(main(body), "pjrt").temporaries == BYTES
    assert of(main(body), "mpi").temporaries == 2 * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_read_twice_at_the_same_place_is_fused(engine: Engine) -> None:
    """As the square of a difference is."""
    square = f"%b = stablehlo.multiply %a, %a : {SQUARE}"

    assert of(main("\n".join([unary("a", "negate", "x"), square, returned("b")])), engine).peak == 2 * BYTES


@pytest.mark.parametrize(
    ("other", "expected"),
    [pytest.param("(i, j)", 2, id="read at the same place"), pytest.param("(j, i)", 3, id="read transposed too")],
)
def test_a_generic_takes_what_it_reads_at_one_place(other: str, expected: int) -> None:
    same = "affine_map<(i, j) -> (i, j)>"
    body = f"""
      {unary("a", "negate", "x")}
      %e = tensor.empty() : {SQUARE}
      %b = linalg.generic {{indexing_maps = [{same}, affine_map<(i, j) -> {other}>, {same}],
          iterator_types = ["parallel", "parallel"]}} ins(%a, %a : {SQUARE}, {SQUARE}) outs(%e : {SQUARE}) {{
      ^bb0(%l: f32, %r: f32, %o: f32):
        %s = arith.mulf %l, %r : f32
        linalg.yield %s : f32
      }} -> {SQUARE}
      {returned("b")}"""

    assert of(main(body), "mpi").peak == expected * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_is_live_up_to_its_last_use(engine: Engine) -> None:
    chain = [product("a", "x"), product("b", "a"), product("c", "b"), product("d", "c", "a")]

    found = of(main("\n".join([*chain, returned("d")])), engine)

    # With `c`, either `b` or the result.
    assert found.without_constants == 4 * BYTES
    assert {one.name for one in found.live} >= {"arg0", "stablehlo.dot"}


LOOP = f"""
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, {SQUARE}
  cond {{
    %end = stablehlo.constant dense<5> : tensor<i32>
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    {product("w", "v")}
    stablehlo.return %next, %w : tensor<i32>, {SQUARE}
  }}
  return %n#1 : {SQUARE}"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_holds_what_goes_in_and_comes_out_of_an_iteration(engine: Engine) -> None:
    found = of(main(LOOP), engine)

    # Counters and their tables are small.
    assert 3 * BYTES <= found.peak < 3.2 * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_loop_carries_is_apart_though_it_begins_with_the_same(engine: Engine) -> None:
    def loop(first: str, second: str) -> PeakMemory:
        types = f"{SQUARE}, {SQUARE}"
        body = f"""{unary("t", "sine", "x")}
{unary("u", "cosine", "x")}
%r:2 = stablehlo.while(%v = %{first}, %w = %{second}) : {types}
cond {{
  %false = stablehlo.constant dense<false> : tensor<i1>
  stablehlo.return %false : tensor<i1>
}} do {{
  {product("p", "v", "w")}
  {product("q", "w", "v")}
  stablehlo.return %p, %q : {types}
}}
%sum = stablehlo.add %r#0, %r#1 : {SQUARE}
{returned("sum")}"""
        return of(main(body), engine)

    assert loop("t", "t").without_constants == loop("t", "u").without_constants


@pytest.mark.parametrize("engine", ENGINES)
def test_calls_need_what_their_functions_do(engine: Engine) -> None:
    inner = "\n".join([product("a", "x"), product("b", "a"), product("c", "b"), returned("c")])
    function = f"func.func private @f(%x: {SQUARE}) -> {SQUARE} {{\n{inner}\n}}"
    outer = f"%y = call @f(%x) : ({SQUARE}) -> {SQUARE}\n{product('z', 'y')}\n{returned('z')}"

    # The argument, in the function two products, and with XLA the result all the time.
    assert of(main(outer) + "\n" + function, engine).peak == (3 + (engine == "pjrt")) * BYTES


UPDATE = f"""
  %i = stablehlo.constant dense<3> : tensor<i32>
  %u = stablehlo.dynamic_update_slice %x, %r, %i, %i
      : ({SQUARE}, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> {SQUARE}
  {returned("u")}"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"])
def test_results_are_in_the_memory_of_donated_arguments(engine: Engine, attribute: str) -> None:
    kept = of(main(UPDATE, f"%x: {SQUARE}, %r: tensor<1x16xf32>"), engine)
    donated = of(main(UPDATE, f"%x: {SQUARE} {{{attribute}}}, %r: tensor<1x16xf32>"), engine)

    assert (kept.aliased, donated.aliased) == (0, BYTES)
    assert donated.peak == kept.peak - BYTES


def test_constants_count_unless_they_are_one_element() -> None:
    body = f"""
      %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %s = stablehlo.constant dense<1.0> : tensor<4xf32>
      %y = stablehlo.add %c, %s : tensor<4xf32>
      {returned("x")}"""

    assert of(main(body)).constants == 16


STAGED = """
  shard.grid @mesh(shape = 4)
  func.func @main(%x: tensor<16x4xf32>) -> tensor<16x16xf32> {
    %y = shard.all_gather %x on @mesh grid_axes = [0] gather_axis = 1 : tensor<16x4xf32> -> tensor<16x16xf32>
    return %y : tensor<16x16xf32>
  }"""


def test_mpi_stages_what_is_gathered_along_an_inner_dimension() -> None:
    along_rows = STAGED.replace("gather_axis = 1", "gather_axis = 0").replace("16x16xf32", "64x4xf32")

    assert of(STAGED).collectives == BYTES
    assert of(STAGED).peak == of(along_rows).peak + BYTES


def test_mpi_stages_nothing_where_the_outer_dimensions_have_one_element() -> None:
    gathered = """shard.grid @mesh(shape = 2)
func.func @main(%x: tensor<1x16x16xf32>) -> tensor<1x32x16xf32> {
  %0 = shard.all_gather %x on @mesh grid_axes = [0] gather_axis = 1 : tensor<1x16x16xf32> -> tensor<1x32x16xf32>
  return %0 : tensor<1x32x16xf32>
}"""
    assert of(gathered).peak == 3 * BYTES


def test_what_is_gathered_is_read_in_its_order_by_what_it_is_fused_into() -> None:
    added = """%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
    return %sum : tensor<f32>"""
    text = STAGED.replace("return %y : tensor<16x16xf32>", added).replace("-> tensor<16x16xf32> {", "-> tensor<f32> {")
    assert of(text, "mpi").peak == BYTES // 4 + BYTES + 4


def test_what_is_packed_is_computed_where_it_is_packed_on_mpi() -> None:
    body = f"""%packed = tensor.empty() : tensor<32x16xf32>
{product("a", "x")}
{product("b", "x", "y")}
%0 = tensor.insert_slice %a into %packed[0, 0] [16, 16] [1, 1] : {SQUARE} into tensor<32x16xf32>
%1 = tensor.insert_slice %b into %0[16, 0] [16, 16] [1, 1] : {SQUARE} into tensor<32x16xf32>
return %1 : tensor<32x16xf32>"""
    found = of(main(body, f"%x: {SQUARE}, %y: {SQUARE}", "tensor<32x16xf32>"), "mpi")
    assert found.peak == (2 + 2) * BYTES


def test_a_scatter_reads_wide_indices_and_filled_updates_on_mpi() -> None:
    body = """%one = stablehlo.constant dense<1.0> : tensor<f32>
%ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<64xf32>
%0 = "stablehlo.scatter"(%x, %at, %ones) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
}) : (tensor<256xf32>, tensor<64x1xi32>, tensor<64xf32>) -> tensor<256xf32>
return %0 : tensor<256xf32>"""
    found = of(main(body, "%x: tensor<256xf32>, %at: tensor<64x1xi32>", "tensor<256xf32>"), "mpi")
    assert found.arguments == BYTES + 256
    assert found.results + found.temporaries == BYTES + 512 + 256


@pytest.mark.parametrize("factor, copies", [("1.0", 0), ("2.0", 1)])
def test_a_product_with_ones_is_folded_on_mpi(factor: str, copies: int) -> None:
    body = f"""%factor = stablehlo.constant dense<{factor}> : tensor<f32>
%factors = stablehlo.broadcast_in_dim %factor, dims = [] : (tensor<f32>) -> {SQUARE}
%scaled = stablehlo.multiply %factors, %x : {SQUARE}
{product("0", "scaled")}
{returned("0")}"""
    assert of(main(body), "mpi").peak == (2 + copies) * BYTES


def test_numbers_of_elements_are_computed_at_each_use_on_mpi() -> None:
    def reading(made: str, arguments: str) -> PeakMemory:
        body = f"""{made}
%wide = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<16xf32>) -> {SQUARE}
%a = stablehlo.add %x, %wide : {SQUARE}
%b = stablehlo.multiply %x, %wide : {SQUARE}
{returned("a", "b")}"""
        return of(main(body, arguments, f"{SQUARE}, {SQUARE}"), "mpi")

    assert reading("%row = stablehlo.iota dim = 0 : tensor<16xf32>", f"%x: {SQUARE}").peak == 3 * BYTES + 64
    assert reading("", f"%x: {SQUARE}, %row: tensor<16xf32>").peak == 4 * BYTES + 64


def test_what_two_kernels_read_is_in_memory_however_often_one_reads_it() -> None:
    body = "\n".join(
        [
            unary("t", "tanh", "x"),
            unary("a", "abs", "t"),
            unary("e", "exponential", "t"),
            unary("s", "sine", "t"),
            f"%m = stablehlo.multiply %e, %s : {SQUARE}",
            returned("a", "m"),
        ]
    )
    assert of(main(body, results=f"{SQUARE}, {SQUARE}"), "mpi").peak == 4 * BYTES


def test_the_kernel_of_a_convolution_is_dilated_in_memory_on_mpi() -> None:
    body = """%0 = stablehlo.convolution(%x, %k) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f],
    window = {rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x9x8xf32>, tensor<2x4x8xf32>) -> tensor<3x8x8xf32>
return %0 : tensor<3x8x8xf32>"""
    found = of(main(body, "%x: tensor<2x9x8xf32>, %k: tensor<2x4x8xf32>", "tensor<3x8x8xf32>"), "mpi")
    assert found.temporaries == 2 * 7 * 8 * 4


def test_the_engine_is_that_of_the_collectives() -> None:
    assert (of(STAGED).engine, of(main(returned("x"))).engine) == ("mpi", "pjrt")


def test_the_place_of_the_peak() -> None:
    body = "\n".join([product("a", "x"), product("b", "a"), product("c", "b"), returned("c")])
    text = mlir_shard.parse(main(body), mlir_shard.create_context(), "program.mlir")

    assert peak_memory(text, engine="mpi").at == "stablehlo.dot at program.mlir:3:6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            main(
                "%y = stablehlo.add %x, %x : tensor<?xf32>\nreturn %y : tensor<?xf32>",
                "%x: tensor<?xf32>",
                "tensor<?xf32>",
            ),
            "dynamic shape",
            id="dynamic shapes",
        ),
        pytest.param("func.func private @main(tensor<4xf32>) -> tensor<4xf32>", "none with a body", id="a declaration"),
    ],
)
def test_what_is_not_predicted(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        of(text)


def test_equal_instructions_and_unused_ones_have_no_memory() -> None:
    body: list[Any] = [
        product("a", "x"),
        product("b", "x"),
        product("unused", "x"),
        product("c", "a", "b"),
        returned("c"),
    ]

    assert of(main("\n".join(body)), "pjrt").peak == 3 * BYTES


def test_a_part_that_is_flattened_is_copied_on_mpi() -> None:
    def of_part(limit: str) -> str:
        return f"""
          {product("a", "x")}
          %s = stablehlo.slice %a [0:8, 0:{limit}] : ({SQUARE}) -> tensor<8x{limit}xf32>
          %f = stablehlo.reshape %s : (tensor<8x{limit}xf32>) -> tensor<{8 * int(limit)}xf32>
          %g = stablehlo.dot %f, %f : (tensor<{8 * int(limit)}xf32>, tensor<{8 * int(limit)}xf32>) -> tensor<f32>
          return %g : tensor<f32>"""

    # Whole rows are in one piece, and halves of rows are not.
    assert of(main(of_part("16"), results="tensor<f32>"), "mpi").peak == 2 * BYTES + 4
    assert of(main(of_part("8"), results="tensor<f32>"), "mpi").peak == 2 * BYTES + BYTES // 4


@pytest.mark.parametrize("splits", [False, True])
def test_a_broadcast_operand_has_no_memory_on_mpi_where_the_product_is_expanded(splits: bool) -> None:
    result = "tensor<4x8x2x8xf32>" if splits else "tensor<4x128xf32>"
    body = f"""
      %b = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({SQUARE}) -> tensor<4x16x16xf32>
      %p = stablehlo.dot_general %y, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<4x8x16xf32>, tensor<4x16x16xf32>) -> tensor<4x8x16xf32>
      %r = stablehlo.reshape %p : (tensor<4x8x16xf32>) -> {result}
      %s = stablehlo.sine %r : {result}
      return %s : {result}"""
    arguments = 3 * BYTES
    found = of(main(body, f"%x: {SQUARE}, %y: tensor<4x8x16xf32>", result), "mpi")

    # The product and its sine, or the broadcast operand and the product.
    assert found.peak == arguments + (2 * 2 * BYTES if splits else (4 + 2) * BYTES)


def test_views_and_products_of_tosa_on_mpi() -> None:
    body = """
      %zero = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
      %shape = tosa.const_shape {values = dense<[1, 16, 16]> : tensor<3xindex>} : () -> !tosa.shape<3>
      %a = tosa.reshape %x, %shape : (tensor<16x16xf32>, !tosa.shape<3>) -> tensor<1x16x16xf32>
      %b = tosa.matmul %a, %a, %zero, %zero
        : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x16xf32>
      return %b : tensor<1x16x16xf32>"""

    assert of(main(body, results="tensor<1x16x16xf32>"), "mpi").peak == 2 * BYTES


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

    # Of 4 KiB each; the result is 2 KiB.
    assert found.temporaries == 2 * 4096


def test_what_a_loop_reads_too_late_is_copied_in_xla() -> None:
    late = LOOP.replace(product("w", "v"), f"{product('u', 'v')}\n%w = stablehlo.add %u, %v : {SQUARE}")

    # The product, and the next value where the last one was.
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
    # The library has no remainders.
    assert of(main(reduced("remainder %x, %x"), f"%x: {wide}", row), "pjrt").temporaries == 64 * 128 * 4


def test_packed_buffers_are_side_by_side_or_one_after_the_other() -> None:
    apart = [Buffer(100, 0, 1), Buffer(100, 2, 3), Buffer(40, 1, 2)]

    assert most_live(apart) == (140, 1)
    assert packed_size(apart, 64) == 128 + 40


def test_temporaries_are_where_results_are_later() -> None:
    early, late, large = Buffer(100, 0, 1), Buffer(100, 4, 5), Buffer(200, 0, 1)

    assert into_results([early, late, large], [Buffer(100, 4, 9)]) == [large, late]


def test_programs_print_what_they_need() -> None:
    text = report_text(of(STAGED), is_json=False)

    assert "at most" in text and "shard.all_gather" in text
    assert '"peak": 2304' in report_text(of(STAGED), is_json=True)
