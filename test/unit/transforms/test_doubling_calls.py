# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of chains of functions that each call the next one twice."""

from __future__ import annotations

import pytest

import mlir_shard as ms

TENSOR = "tensor<8xf32>"


def chain(levels: int) -> str:
    functions = [f"func.func private @f0(%a: {TENSOR}) -> {TENSOR} {{\n  return %a : {TENSOR}\n}}"]
    for level in range(1, levels + 1):
        call = f"call @f{level - 1}"
        functions.append(f"""func.func private @f{level}(%a: {TENSOR}) -> {TENSOR} {{
  %0 = {call}(%a) : ({TENSOR}) -> {TENSOR}
  %1 = {call}(%0) : ({TENSOR}) -> {TENSOR}
  return %1 : {TENSOR}
}}""")
    return "\n".join(
        [
            'sdy.mesh @m = <["x"=2]>',
            *functions,
            f'func.func @main(%a: {TENSOR} {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}) -> {TENSOR} {{',
            f"  %0 = call @f{levels}(%a) : ({TENSOR}) -> {TENSOR}\n  return %0 : {TENSOR}\n}}",
        ]
    )


@pytest.mark.parametrize("pipeline", ["spmd-pipeline", "spmd-pipeline{collectives=stablehlo}", "shard-propagate"])
def test_inlined_calls(pipeline: str) -> None:
    ms.run(ms.parse(chain(5)), f"builtin.module({pipeline})")
    with pytest.raises(ms.PassFailure, match=r"inlining @f16 and its callees replaces 131070 calls"):
        ms.run(ms.parse(chain(40)), f"builtin.module({pipeline})")


def test_copied_functions() -> None:
    ms.run(ms.parse(chain(5)), "builtin.module(sdy-propagation-pipeline)")
    with pytest.raises(ms.PassFailure, match=r"the calls require \d+ copies of functions, more than 65536: @f\d+ and"):
        ms.run(ms.parse(chain(40)), "builtin.module(sdy-propagation-pipeline)")
