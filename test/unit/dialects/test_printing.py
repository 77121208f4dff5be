# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of printed modules, which are verified first."""

from __future__ import annotations

from typing import Any

import pytest
from dialects.verified_programs import TEXT, ops_named

import mlir_shard
from mlir_shard.asm import print_operation
from mlir_shard.dialects.verifiers import checks
from mlir_shard.host import ir

CALLS = 60
TYPE = "tensor<8x6xf32>"


def computations() -> str:
    """Returns a program of many manual computations that agree except for their operands."""
    body = "\n".join(
        f"""%s{number} = sdy.manual_computation(%s{number - 1}) in_shardings=[<@mesh, [{{"x"}}, {{}}]>]
          out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x"}} (%l: tensor<4x6xf32>) {{
            sdy.return %l : tensor<4x6xf32>
          }} : ({TYPE}) -> {TYPE}"""
        for number in range(1, CALLS + 1)
    )
    return f"""sdy.mesh @mesh = <["x"=2]>
      func.func @main(%s0: {TYPE}) -> {TYPE} {{
        {body}
        return %s{CALLS} : {TYPE}
      }}"""


def test_one_operation_of_each_kind_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mlir_shard.parse(computations(), mlir_shard.create_context())
    expected = print_operation(module)
    types, shape_of = [], checks.plain_shape
    monkeypatch.setattr(checks, "plain_shape", lambda type_: types.append(type_) or shape_of(type_))
    assert mlir_shard.print_module(module) == expected
    assert len(types) < CALLS


def test_an_invalid_operation_is_printed_as_by_the_host(capfd: Any) -> None:
    module = mlir_shard.parse(computations(), mlir_shard.create_context())
    computation = ops_named(module, "sdy.manual_computation")[-1]
    computation.attributes["manual_axes"] = ir.StringAttr.get("none", module.context)
    printed = mlir_shard.print_module(module)
    assert printed == print_operation(module)
    assert '"none"' in printed and '"func.return"' in printed
    assert not any(capfd.readouterr())


def test_a_printed_program_is_that_of_the_host() -> None:
    module = mlir_shard.parse(TEXT, mlir_shard.create_context())
    for op in (module, *ops_named(module, "func.func")):
        assert mlir_shard.print_module(op) == print_operation(op)
    assert mlir_shard.print_module(module, generic=True) == print_operation(module, generic=True)
