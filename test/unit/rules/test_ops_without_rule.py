# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops of sdy, and ops of StableHLO that propagate by other means, are registered as ops without a rule."""

from __future__ import annotations

import pytest
from rules.modules import rule_of

from mlir_shard.dialects import sdy
from mlir_shard.rules.registry import reason_without_rule


def test_sdy_is_known() -> None:
    names = {op.OPERATION_NAME for op in vars(sdy).values() if hasattr(op, "OPERATION_NAME")}
    assert {name for name in names if name.startswith("sdy.") and reason_without_rule(name) is None} == {
        "sdy.sharding_constraint"
    }


@pytest.mark.parametrize(
    ("signature", "op", "name"),
    [
        ("", "%0 = stablehlo.constant dense<1.0> : tensor<4xf32>", "stablehlo.constant"),
        ("", "%0 = stablehlo.iota dim = 0 : tensor<4xf32>", "stablehlo.iota"),
        (
            "%a: tensor<4xf32>",
            "%0 = stablehlo.optimization_barrier %a : tensor<4xf32>",
            "stablehlo.optimization_barrier",
        ),
        ("%a: tensor<4xf32>", '%0 = sdy.reshard %a <mesh<["x"=2]>, [{"x"}]> : tensor<4xf32>', "sdy.reshard"),
    ],
)
def test_there_is_none(signature: str, op: str, name: str) -> None:
    assert rule_of(signature, op) == "None"
    assert reason_without_rule(name)
