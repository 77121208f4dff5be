# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the memory that a rank needs with either engine, for small programs with memory added up by hand."""

from __future__ import annotations

import pytest
from small_programs import BYTES, SQUARE, STAGED, loop, main, of, product, returned, unary

import mlir_shard
from mlir_shard.explain.allocation.buffers import Buffer, into_results, most_live, packed_size
from mlir_shard.explain.memory import Engine, PeakMemory, peak_memory
from mlir_shard.explain.memory_report import report_text

ENGINES: tuple[Engine, ...] = ("mpi", "pjrt")


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


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_read_twice_at_the_same_place_is_fused(engine: Engine) -> None:
    """An operand that is read twice at the same position is fused, as in the square of a difference."""
    square = f"%b = stablehlo.multiply %a, %a : {SQUARE}"

    assert of(main("\n".join([unary("a", "negate", "x"), square, returned("b")])), engine).peak == 2 * BYTES


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_is_live_up_to_its_last_use(engine: Engine) -> None:
    chain = [product("a", "x"), product("b", "a"), product("c", "b"), product("d", "c", "a")]

    found = of(main("\n".join([*chain, returned("d")])), engine)

    # `c` is live together with `b` or with the result.
    assert found.without_constants == 4 * BYTES
    assert {one.name for one in found.live} >= {"arg0", "stablehlo.dot"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_holds_what_goes_in_and_comes_out_of_an_iteration(engine: Engine) -> None:
    found = of(main(loop()), engine)

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

    # The argument and two products in the function, and with XLA also the result, which is allocated from the start.
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
