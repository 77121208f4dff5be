# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and windowed reductions sharded over two devices give the results of the unsharded op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime.local_program import needs_jax
from transforms import xla_devices

from mlir_shard import asm
from mlir_shard import run as run_passes
from mlir_shard.dialects.contexts import create_context
from mlir_shard.transforms.partition.shard_split_windows import SplitWindows

pytestmark = needs_jax

HALVES = '{sdy.sharding = #sdy.sharding<@m, [{}, {"x"}, {}]>}'
LOCAL = "builtin.module(shard-spmdize{collectives=stablehlo})"
CONVOLUTION = """
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [{stride}], pad = [[{low}, {high}]], rhs_dilate = [{step}]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, {of}}} : ({operand}, {kernel}) -> {result}"""
REDUCTION = """
  %i = stablehlo.constant dense<{initial}> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%a, %i) <{{window_dimensions = array<i64: 1, {size}, 1>,
      window_strides = array<i64: 1, {stride}, 1>, window_dilations = array<i64: 1, {step}, 1>,
      padding = dense<[[0, 0], [{low}, {high}], [0, 0]]> : tensor<3x2xi64>}}> ({{
  ^bb0(%l: tensor<i32>, %r: tensor<i32>):
    %s = stablehlo.{combiner} %l, %r : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }}) {{{of}}} : ({operand}, tensor<i32>) -> {result}"""


def windows(random: np.random.Generator) -> dict[str, int]:
    """Returns random attributes of an even number of windows over an even number of elements."""
    while True:
        length, size, stride, step = (int(random.integers(*ends)) for ends in ((4, 10), (1, 5), (1, 4), (1, 3)))
        low, high = (int(random.integers(-1, 4)) for _ in range(2))
        spare = 2 * length + low + high - (size - 1) * step - 1
        count = spare // stride + 1
        if spare >= 0 and count % 2 == 0:
            return {"length": 2 * length, "size": size, "stride": stride, "step": step} | {
                "low": low,
                "high": high,
                "count": count,
            }


def program(form: str, window: dict[str, int], **others: Any) -> str:
    types = {
        "operand": f"tensor<2x{window['length']}x3xi32>",
        "kernel": f"tensor<{window['size']}x3x4xi32>",
        "result": f"tensor<2x{window['count']}x{4 if form is CONVOLUTION else 3}xi32>",
    }
    of = 'sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"x"}, {}]>]>'
    arguments = f"%a: {types['operand']} {HALVES}, %k: {types['kernel']}"
    return f"""sdy.mesh @m = <["x"=2]>
func.func @main({arguments}) -> ({types["result"]} {HALVES}) {{
  {form.format(of=of, **types, **window, **others)}
  return %0 : {types["result"]}
}}"""


@pytest.mark.parametrize(
    ("form", "others"),
    [
        (CONVOLUTION, {}),
        (REDUCTION, {"combiner": "add", "initial": 0}),
        (REDUCTION, {"combiner": "maximum", "initial": -2}),
        (REDUCTION, {"combiner": "minimum", "initial": 9}),
        (REDUCTION, {"combiner": "add", "initial": 1}),
    ],
)
def test_random_windows(form: str, others: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    exchanged = 0
    for _ in range(8):
        window = windows(random)
        text = program(form, window, **others)
        inputs = [random.integers(-9, 9, (2, window["length"], 3)), random.integers(-9, 9, (window["size"], 3, 4))]
        operand, kernel = (one.astype(np.int32) for one in inputs)
        whole = asm.parse_module(text, create_context())
        run_passes(whole, "builtin.module(sdy-drop-sharding-and-mesh)")
        # The reference is XLA's: unlike StableHLO's interpreter, it skips padding in reductions with initial value 1.
        ((expected,),) = xla_devices.run(whole, [[operand, kernel]])
        module = asm.parse_module(text, create_context())
        run_passes(module, LOCAL)
        blocks = xla_devices.run(module, [[half, kernel] for half in np.split(operand, 2, axis=1)])
        local = asm.print_operation(module.operation)
        np.testing.assert_array_equal(np.concatenate([of for (of,) in blocks], axis=1), expected, err_msg=local)
        exchanged += "all_gather" not in local
    assert exchanged > 3 or others.get("initial") == 1


def test_a_gradient_of_a_pool_that_stays_has_not_changed() -> None:
    module = asm.parse_module(
        """sdy.mesh @m = <["x"=2]>
        func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %b: tensor<8xf32>) {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %p = stablehlo.pad %a, %zero, low = [0], high = [1], interior = [1] : (tensor<8xf32>, tensor<f32>)
              -> tensor<16xf32>
          %0 = "stablehlo.select_and_scatter"(%p, %b, %zero) <{window_dimensions = array<i64: 2>,
              window_strides = array<i64: 2>}> ({
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
            %1 = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }, {
          ^bb0(%l: tensor<f32>, %r: tensor<f32>):
            %1 = stablehlo.add %l, %r : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }) : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
          %2 = stablehlo.slice %0 [0:15] : (tensor<16xf32>) -> tensor<15xf32>
          return
        }""",
        create_context(),
    )
    (_, function) = (op.operation for op in module.body.operations)
    with module.context:
        assert SplitWindows().run(function) is False
