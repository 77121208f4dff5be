# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`canonicalize` gives the result of the host's greedy driver where it skips the driver."""

from __future__ import annotations

from typing import Any

import pytest
from passes.programs import modules

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import contents, operations_named
from mlir_shard.passes.registry import PassFailure
from mlir_shard.transforms.canonicalize.canonicalize import Canonicalize
from mlir_shard.transforms.canonicalize.reshard import BACK, EXACT


@pytest.mark.parametrize("patterns", [(), ("sdy-reshard",)], ids=["all", "reshards"])
def test_what_is_kept_is_canonical(patterns: tuple[str, ...]) -> None:
    canonicalize = Canonicalize(enable_patterns=patterns)
    kept = 0
    for _, module in modules(mlir_shard.create_context()):
        op = module.operation
        with op.context, op.location:
            before = str(op)
            if canonicalize.run(op):
                continue
            kept += 1
            assert str(op) == before
            canonicalize._rewrite(op, contents(op))
            assert str(op) == before
    assert kept > 50


@pytest.mark.parametrize("inserted", [False, True])
def test_reshards_are_simplified_as_by_the_driver(inserted: bool) -> None:
    canonicalize = Canonicalize(enable_patterns=(*EXACT, BACK))
    simplified = 0
    for _, module in modules(mlir_shard.create_context()):
        if inserted and not _reshard(module):
            continue
        op = module.operation
        held = contents(op)
        if not canonicalize._simplifies_reshards_alone(held):
            continue
        if any(one.parent.name != "func.func" for one in operations_named(op, "sdy.reshard")):
            continue  # The driver does not replace reshards by ones of enclosing blocks.
        copy = op.clone()
        with op.context, op.location:
            simplified += bool(canonicalize.run(op))
            canonicalize._rewrite(copy, held)
        assert _with_locations(op) == _with_locations(copy)
    assert simplified > 10


def test_reshards_between_operations_that_fold_are_simplified_without_the_driver() -> None:
    """The driver's time is quadratic in the number of reshards of one value."""
    module = mlir_shard.parse(
        """
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %0 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<4xf32>
          %1 = arith.negf %0 : tensor<4xf32>
          %2 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<4xf32>
          %3 = arith.negf %2 : tensor<4xf32>
          return %1, %3 : tensor<4xf32>, tensor<4xf32>
        }""",
        mlir_shard.create_context(),
    )
    canonicalize = Canonicalize(enable_patterns=(*EXACT, BACK))
    assert canonicalize._simplifies_reshards_alone(contents(module.operation))
    assert canonicalize.run(module.operation)
    assert len(operations_named(module.operation, "sdy.reshard")) == 1


def _with_locations(op: Any) -> str:
    text: str = op.get_asm(enable_debug_info=True)
    return text


def _reshard(module: Any) -> bool:
    try:
        mlir_shard.run(module, "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))")
    except PassFailure:
        return False
    return True


def _canonical(text: str) -> Any:
    module = mlir_shard.parse(text, mlir_shard.create_context())
    mlir_shard.run(module, "builtin.module(canonicalize)")
    return module


@pytest.mark.parametrize(
    ("op", "left"),
    [
        ("%0 = stablehlo.constant dense<1.0> : tensor<4xf32>", ["func.return"]),
        ("%0 = sdy.constant dense<1.0> : tensor<4xf32>", ["func.return"]),
        ("%0 = stablehlo.tanh %a : tensor<4xf32>\n%1 = sdy.reshard %0 <@mesh, [{}]> : tensor<4xf32>", ["func.return"]),
        ("%0 = stablehlo.custom_call @f(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>", None),
    ],
)
def test_unused_operations_go(op: str, left: list[str] | None) -> None:
    module = _canonical(
        f'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {op}\n'
        "return %a : tensor<4xf32> }"
    )
    (function,) = (one for one in module.body.operations if one.operation.name == "func.func")
    names = [one.operation.name for one in function.regions[0].blocks[0].operations]
    assert names == (left or ["stablehlo.custom_call", "func.return"])


def test_constant_operands_come_last() -> None:
    module = _canonical(
        "func.func @main(%a: i32) -> i32 { %c = arith.constant 1 : i32\n%0 = arith.addi %c, %a : i32\nreturn %0 : i32 }"
    )
    (add,) = operations_named(module, "arith.addi")
    assert isinstance(add.operands[0].owner, ir.Block)
