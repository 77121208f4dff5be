# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the names of inherent attributes, against the host's attribute dictionaries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mlir_shard import host
from mlir_shard.asm.inherent_names import inherent_names
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below

STABLEHLO = """
func.func @main(%a: tensor<4x4xf32>, %k: tensor<2x2x1x1xf32>, %i: tensor<1x4x4x1xf32>, %s: tensor<2xi32>)
    -> tensor<4x4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "f", api_version = 4 : i32, backend_config = {},
    has_side_effect = true,
    called_computations = [], operand_layouts = [dense<[1, 0]> : tensor<2xindex>],
    result_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = []}
    : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot_general %a, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
    algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
      lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
      allow_imprecise_accumulation = false>
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "stablehlo.convolution"(%i, %k) {
    batch_group_count = 1 : i64, feature_group_count = 1 : i64, window_strides = array<i64: 1, 1>,
    padding = dense<0> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>,
    window_reversal = array<i1: false, false>,
    precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>],
    dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
  } : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x3x1xf32>
  %3 = "stablehlo.all_reduce"(%1) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %sum = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %sum : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      use_global_device_ids} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "stablehlo.exponential"(%3) {
    result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}
    : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}
"""
UPSTREAM = """
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = arith.addf %a, %b fastmath<fast> : tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], doc = "negates", library_call = "neg"}
      ins(%0 : tensor<4x4xf32>) outs(%b : tensor<4x4xf32>) {
    ^bb0(%x: f32, %y: f32):
      %2 = arith.negf %x : f32
      linalg.yield %2 : f32
  } -> tensor<4x4xf32>
  %3 = tensor.extract_slice %1 [0, 0] [2, 4] [1, 1] : tensor<4x4xf32> to tensor<2x4xf32>
  %4 = tensor.insert_slice %3 into %1 [2, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
  %5 = tosa.add %4, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %5 : tensor<4x4xf32>
}
"""


@pytest.mark.parametrize("text", [STABLEHLO, UPSTREAM], ids=["stablehlo", "upstream"])
def test_all_attributes_of_operations_are_among_the_names(text: str) -> None:
    module = parse(text, create_context())
    for op in ops_below(module):
        assert set(op.attributes) <= set(inherent_names(op.name, many=True) or ()), op.name


def test_names_are_not_known_of_a_newer_stablehlo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "stablehlo_version", lambda: (99, 0, 0))
    assert inherent_names("stablehlo.add") is None


def test_names_are_not_known_of_a_dialect_without_wrappers() -> None:
    assert inherent_names("mine.op", many=True) is None


def test_all_attributes_of_operations_of_sdy_are_discardable() -> None:
    module = parse(
        """sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<8xf32>) {
          %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
          %1 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
          %2 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
          return
        }""",
        create_context(),
    )
    assert inherent_names("sdy.reshard") == ()
    arrays = ModuleArrays(module)
    names = [arrays.operation(op).name for op in range(len(arrays))]
    of_reshards = [one for one, name in zip(arrays.signatures, names, strict=True) if name == "sdy.reshard"]
    assert of_reshards[0] == of_reshards[2] != of_reshards[1]


def test_wrappers_are_loaded_where_operations_are_many() -> None:
    code = """
import sys
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.ir.arrays import ModuleArrays

LINES = ["%{0} = tensor.extract_slice %a[0] [4] [{1}] : tensor<8xf32> to tensor<4xf32>".format(n, 1 + n % 2)
         for n in range(int(sys.argv[1]))]
body = chr(10).join(LINES)
module = parse("func.func @main(%a: tensor<8xf32>) { " + body + chr(10) + "return }", create_context())
signatures = ModuleArrays(module).signatures
assert len(set(signatures)) == 4
print(any(name.endswith("._tensor_ops_gen") for name in sys.modules))
"""
    for count, is_loaded in ((100, False), (3000, True)):
        done = subprocess.run([sys.executable, "-c", code, str(count)], check=True, capture_output=True, text=True)
        assert done.stdout.split() == [str(is_loaded)]
