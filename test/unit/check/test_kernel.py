# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the kernel: it is small, and it proves programs by symbols alone and by lemmas alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from certified_programs.partitioned import Source, checked, partitioned
from check.test_mutants import MESH, PROGRAMS

import mlir_shard.check.kernel
from mlir_shard.check.checker import Certificate, check
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse

TOO_LARGE = re.sub(r"\b(8|12|16)x(12|16)xf32", r"\g<1>00x\g<2>00xf32", PROGRAMS["contraction"])


def test_the_kernel_is_small_enough_to_be_read() -> None:
    folder = Path(mlir_shard.check.kernel.__path__[0])
    assert sum(len(path.read_text().splitlines()) for path in folder.glob("*.py")) < 1000


@pytest.mark.parametrize("by", ["symbols", "lemmas"])
@pytest.mark.parametrize("target", ["shard", "stablehlo"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_way_proves_alone(name: str, target: str, by: str) -> None:
    one = partitioned(Source(name, MESH + PROGRAMS[name]), target)
    assert one is not None
    assert one.verdict.is_proved
    if name != "looked up" or by == "lemmas":
        # Symbols do not decide whether a shard contains the index.
        assert checked(one, one.module, by).is_proved


@pytest.mark.parametrize("target", ["shard", "stablehlo"])
def test_large_programs_are_proved_by_lemmas(target: str) -> None:
    one = partitioned(Source("large", MESH + TOO_LARGE), target)
    assert one is not None
    assert one.verdict.is_proved
    assert one.verdict.by == "lemmas"
    assert not checked(one, one.module, "symbols").is_proved


MEAN = """func.func @main(%a: tensor<SIZExTYPE>) -> tensor<TYPE> {
  %zero = stablehlo.constant dense<ZERO> : tensor<TYPE>
  %two = stablehlo.constant dense<TWO> : tensor<TYPE>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<SIZExTYPE>, tensor<TYPE>) -> tensor<TYPE>
  %1 = stablehlo.divide %0, %two : tensor<TYPE>
  REDUCED
}"""
LAYOUTS = '{"mesh": [["x", 2]], "functions": {"main": {"arguments": [[["x"]]], "results": [[]]}}}'


@pytest.mark.parametrize("by", ["symbols", "lemmas"])
@pytest.mark.parametrize(("type_", "zero", "two"), [("f32", "0.0", "2.0"), ("i32", "0", "2")])
def test_a_quotient_of_a_sum_is_a_sum_of_quotients_of_floats_alone(type_: str, zero: str, two: str, by: str) -> None:
    text = MEAN.replace("ZERO", zero).replace("TWO", two)
    reduced = (
        "%2 = shard.all_reduce %1 on @m grid_axes = [0] : tensor<TYPE> -> tensor<TYPE>\n  return %2 : tensor<TYPE>"
    )
    whole = text.replace("SIZE", "8").replace("REDUCED", "return %1 : tensor<TYPE>").replace("TYPE", type_)
    local = text.replace("SIZE", "4").replace("REDUCED", reduced).replace("TYPE", type_)
    context = create_context()
    modules = parse(whole, context, "global"), parse(f"shard.grid @m(shape = 2)\n{local}", context, "local")
    assert check(*modules, Certificate.read(LAYOUTS), by=by).is_proved == (type_ == "f32")


LOOPS = """func.func @main(%a: tensor<8x4xf32>, %b: tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<8x4xf32> cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.tanh %x : tensor<8x4xf32>
    stablehlo.return %next, %y : tensor<i32>, tensor<8x4xf32>
  }
  %1:2 = stablehlo.while(%i = %zero, %x = %b) : tensor<i32>, tensor<8xf32> cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.exponential %x : tensor<8xf32>
    stablehlo.return %next, %y : tensor<i32>, tensor<8xf32>
  }
  return %0#1, %1#1 : tensor<8x4xf32>, tensor<8xf32>
}"""
LAYOUTS_OF_LOOPS = """{"mesh": [["x", 2]], "functions": {"main": {
  "arguments": [[["x"], []], [["x"]]], "results": [[["x"], []], [["x"]]]}},
  "loops": [[[], [["x"], []]], [[], [["x"]]]]}"""


@pytest.mark.parametrize("by", ["symbols", "lemmas"])
def test_loops_that_carry_tensors_of_other_shapes(by: str) -> None:
    context = create_context()
    local = LOOPS.replace("8x4xf32", "4x4xf32").replace("8xf32", "4xf32")
    modules = parse(LOOPS, context, "global"), parse(local, context, "local")
    assert check(*modules, Certificate.read(LAYOUTS_OF_LOOPS), by=by).is_proved


@pytest.mark.parametrize("side", ["arguments", "results"])
def test_a_layout_of_other_dimensions_is_refused(side: str) -> None:
    context = create_context()
    local = LOOPS.replace("8x4xf32", "4x4xf32").replace("8xf32", "4xf32")
    modules = parse(LOOPS, context, "global"), parse(local, context, "local")
    wrong = LAYOUTS_OF_LOOPS.replace(f'"{side}": [[["x"], []]', f'"{side}": [[["x"]]')
    assert not check(*modules, Certificate.read(wrong)).is_proved
