# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of messages in transit while ranks compute: collective matmuls, and nonblocking calls of MPI."""

from __future__ import annotations

import re

import numpy as np
import pytest
from random_programs.execution import RIGHT, outcome
from random_programs.routes import Setting
from runtime.in_process import lower
from runtime.local_program import needs_mpich

import mlir_shard
from mlir_shard.runtime import execute
from mlir_shard.runtime.compile import Pipelines
from mlir_shard.runtime.lowering import nonblocking_messages

RINGS = Pipelines(
    "shard-propagate", "shard-spmdize{overlap=false},shard-collective-matmul{always=true},canonicalize,cse"
)
SHARDED = {"rows": '{"x"}, {}', "columns": '{}, {"x"}', "whole": "{}, {}"}


def matmul(a: str, b: str, c: str, op: str) -> str:
    """Returns a product of 24x36 and 36x12 matrices whose dimensions are on an axis of three devices."""

    def sharding(of: str) -> str:
        return f"#sdy.sharding<@mesh, [{SHARDED[of]}]>"

    return f"""
      sdy.mesh @mesh = <["y"=2, "x"=3]>
      func.func @main(%a: tensor<24x36xf32> {{sdy.sharding = {sharding(a)}}},
                      %b: tensor<36x12xf32> {{sdy.sharding = {sharding(b)}}})
          -> (tensor<24x12xf32> {{sdy.sharding = {sharding(c)}}}) {{
        {op}
        return %0 : tensor<24x12xf32>
      }}"""


DOT = """%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
            : (tensor<24x36xf32>, tensor<36x12xf32>) -> tensor<24x12xf32>"""
MATMUL = """%init = arith.constant dense<0.5> : tensor<24x12xf32>
        %0 = linalg.matmul ins(%a, %b : tensor<24x36xf32>, tensor<36x12xf32>)
            outs(%init : tensor<24x12xf32>) -> tensor<24x12xf32>"""


@needs_mpich
@pytest.mark.parametrize("op", [DOT, MATMUL], ids=["stablehlo", "linalg"])
@pytest.mark.parametrize(
    ("a", "b", "c"), [("rows", "columns", "columns"), ("columns", "columns", "columns"), ("columns", "rows", "rows")]
)
def test_rings_compute_what_one_device_does(a: str, b: str, c: str, op: str) -> None:
    module = mlir_shard.parse(matmul(a, b, c, op), mlir_shard.create_context())
    generator = np.random.default_rng(0)
    left, right = (generator.standard_normal(shape, np.float32) for shape in ((24, 36), (36, 12)))
    local = module.operation.clone()
    mlir_shard.run(local, f"builtin.module({RINGS.propagate},{RINGS.spmdize})")
    assert str(local).count("shard.shift") == 2
    (result,) = execute(module, [left, right], pipelines=RINGS)
    np.testing.assert_allclose(result, left @ right + (0.5 if op is MATMUL else 0), rtol=1e-4, atol=1e-4)


LOCAL = """
shard.grid @g(shape = 4)
func.func @main(%a: tensor<{rows}x512xf32>, %b: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {{
  %0 = linalg.matmul ins(%b, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%b : tensor<512x512xf32>)
      -> tensor<512x512xf32>
  {collective}
  return %0, %1 : tensor<512x512xf32>, tensor<512x512xf32>
}}
"""
GATHER = "%1 = shard.all_gather %a on @g grid_axes = [0] gather_axis = 0 : tensor<128x512xf32> -> tensor<512x512xf32>"
SHIFT = """%1 = shard.shift %a on @g grid_axes = [0] shift_axis = 0 offset = 1 rotate
      : tensor<512x512xf32> -> tensor<512x512xf32>"""


@pytest.mark.parametrize(
    ("rows", "collective", "started"),
    [(128, GATHER, ["MPI_Iallgather"]), (512, SHIFT, ["MPI_Irecv", "MPI_Isend"])],
    ids=["all_gather", "shift"],
)
def test_messages_are_under_way_while_a_product_is_computed(rows: int, collective: str, started: list[str]) -> None:
    (lowered,) = lower([LOCAL.format(rows=rows, collective=collective)], "main")
    called = re.findall(r"llvm\.call @(?:timed\.)?(MPI_\w+|cblas_\w+)", lowered.partition("timed.clock() ->")[0])
    called = [name for name in called if not name.startswith("MPI_Comm")]
    assert called == [*started, "cblas_sgemm", *["MPI_Wait" for _ in started]]


def test_a_message_that_is_needed_at_once_is_waited_for() -> None:
    collective = (
        GATHER.replace("%1", "%2")
        + """
  %1 = linalg.matmul ins(%2, %0 : tensor<512x512xf32>, tensor<512x512xf32>) outs(%b : tensor<512x512xf32>)
      -> tensor<512x512xf32>"""
    )
    text = LOCAL.format(rows=128, collective=collective).replace("ins(%b, %b", "ins(%2, %2").splitlines()
    gather = next(line for line in text if "all_gather" in line)
    text.remove(gather)
    text.insert(3, gather)
    (lowered,) = lower(["\n".join(text)], "main")
    assert "@timed.MPI_Allgather" in lowered
    assert "MPI_Iallgather" not in lowered


def test_a_message_is_not_started_where_another_one_was() -> None:
    """The second gather can start from the position of the first one, and that is moved before the op that it sends."""
    text = """
      shard.grid @g(shape = 4)
      func.func @main(%a: tensor<128x512xf32>, %b: tensor<512x512xf32>)
          -> (tensor<512x512xf32>, tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) {
        %long = linalg.matmul ins(%b, %b : tensor<512x512xf32>, tensor<512x512xf32>)
            outs(%b : tensor<512x512xf32>) -> tensor<512x512xf32>
        %sent = linalg.matmul ins(%a, %b : tensor<128x512xf32>, tensor<512x512xf32>)
            outs(%a : tensor<128x512xf32>) -> tensor<128x512xf32>
        %0 = shard.all_gather %a on @g grid_axes = [0] gather_axis = 0 : tensor<128x512xf32> -> tensor<512x512xf32>
        %short = linalg.matmul ins(%sent, %b : tensor<128x512xf32>, tensor<512x512xf32>)
            outs(%a : tensor<128x512xf32>) -> tensor<128x512xf32>
        %1 = shard.all_gather %sent on @g grid_axes = [0] gather_axis = 0 : tensor<128x512xf32> -> tensor<512x512xf32>
        return %long, %short, %0, %1
            : tensor<512x512xf32>, tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>
      }"""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    nonblocking_messages.hoist(module)
    assert module.operation.verify()
    ops = [op.name for op in module.body.operations[1].regions[0].blocks[0].operations]
    matmul, gather = "linalg.matmul", "shard.all_gather"
    assert ops == [matmul, gather, matmul, gather, matmul, "func.return"]


def test_what_is_sent_is_not_written_to_before_the_message_has_gone() -> None:
    """The scatter could write to the memory of `%iota` while a gather sends it; MPI reads it as late as it may."""
    text = """
      sdy.mesh @mesh = <["x"=2]>
      func.func @main() -> (tensor<24xf64>, tensor<24xf64>) {
        %zero = stablehlo.constant dense<0> : tensor<1xi32>
        %one = stablehlo.constant dense<1.0> : tensor<f64>
        %false = stablehlo.constant dense<false> : tensor<i1>
        %iota = stablehlo.iota dim = 0 : tensor<24xf64>
        %0 = "stablehlo.scatter"(%iota, %zero, %one) <{scatter_dimension_numbers =
            #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
        ^bb0(%old: tensor<f64>, %new: tensor<f64>):
          stablehlo.return %new : tensor<f64>
        }) : (tensor<24xf64>, tensor<1xi32>, tensor<f64>) -> tensor<24xf64>
        %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<24xf64>
        %2 = stablehlo.select %false, %1, %iota : tensor<i1>, tensor<24xf64>
        %3 = "stablehlo.sort"(%2) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%left: tensor<f64>, %right: tensor<f64>):
          stablehlo.return %false : tensor<i1>
        }) : (tensor<24xf64>) -> tensor<24xf64>
        return %0, %3 : tensor<24xf64>, tensor<24xf64>
      }"""
    found = outcome(text, Setting(("shard",), "simulated").routes(), 0, lambda stage: None)
    assert found.kind == RIGHT, found.detail
