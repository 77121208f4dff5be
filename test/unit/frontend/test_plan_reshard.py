# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of plans for partition specs."""

import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.cost.links import Link


@pytest.mark.parametrize("dtype", [np.float32, "f32", "float32", np.dtype("float32")])
def test_the_example_of_the_readme(dtype) -> None:
    plan = ms.plan_reshard(ms.Mesh({"x": 2, "y": 3}), (1200, 1800), dtype, P("x", "y"), P("y", "x"))
    assert plan.bytes_received == 1_440_000
    assert "1200x1800xf32" in str(plan)
    assert "direct exchange" in str(plan)


def test_to_other_devices() -> None:
    source, target = ms.Mesh({"x": 8}), ms.Mesh({"x": 6})
    plan = ms.plan_reshard(source, (2400, 4800), "bf16", P("x"), P(None, "x"), target_mesh=target)
    assert plan.total_bytes == plan.plan.bound.total


def test_errors() -> None:
    mesh = ms.Mesh({"x": 2})
    with pytest.raises(ValueError, match="axis 'y' is not in the mesh"):
        ms.plan_reshard(mesh, (4,), "f32", P("y"), P())
    with pytest.raises(ValueError, match="float7"):
        ms.plan_reshard(mesh, (4,), "float7", P("x"), P())
    model = CostModel(links=(("TYPO", Link(1.0, 1.0)),))
    with pytest.raises(ValueError, match=r'^links\.TYPO: not an axis of the mesh, which has "x"$'):
        ms.plan_reshard(mesh, (4,), "f32", P("x"), P(), cost_model=model)
