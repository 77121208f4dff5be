# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares chains with those that Shardy records; `python -m explained_programs --shardy` compares more."""

from __future__ import annotations

from differential.sides import Shardy
from explained_programs.shardy_steps import OF_FUNCTION, Agreement, agreement
from random_programs.generate import Scale, program

SWAPPED = """
sdy.mesh @m = <["a"=4, "b"=2]>
func.func @main(%n: tensor<i32>, %x: tensor<24x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {?}]>},
                %y: tensor<24x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"b", ?}]>}) -> tensor<24x8xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:3 = stablehlo.while(%i = %n, %p = %x, %q = %y) : tensor<i32>, tensor<24x8xf32>, tensor<24x8xf32> cond {
    %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.sine %p : tensor<24x8xf32>
    stablehlo.return %j, %q, %s : tensor<i32>, tensor<24x8xf32>, tensor<24x8xf32>
  }
  %1 = stablehlo.add %0#1, %0#2 : tensor<24x8xf32>
  return %1 : tensor<24x8xf32>
}
"""


def test_chains_are_made_of_the_steps_that_shardy_records() -> None:
    found = Agreement()
    with Shardy() as shardy:
        # Programs 31 and 36 have loops; in programs 21, 30 and 31 annotations have parts of axes.
        for number in (3, 21, 30, 31, 36, 42):
            found += agreement(program(f"5/{number}", scale=Scale.of(1, 4)).write(), shardy)
        found += agreement(SWAPPED, shardy)
    assert not found.lines
    assert found.programs == 7 and found.axes > 100
    assert found.same_steps + found.other_steps[OF_FUNCTION] == found.axes
    assert found.same_origins > found.other_origins.total() > 0
