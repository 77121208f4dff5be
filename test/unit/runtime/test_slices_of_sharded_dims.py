# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of one index of a sharded dimension, which is then dropped: the devices sum the slices of their shards."""

from __future__ import annotations

import numpy as np
import pytest
from runtime.local_program import needs_jax, needs_mpich

import mlir_shard
from mlir_shard.resharding.cost.communication import CollectiveKind
from mlir_shard.runtime import execute
from mlir_shard.runtime.compile import Pipelines
from mlir_shard.transforms.communication.shard_communication_report import communication_report

DEVICES, STEPS, TAKEN, ROWS = 4, 5, 3, 1024
TARGETS = [
    pytest.param("shard", "mpi", marks=needs_mpich),
    pytest.param("stablehlo", "pjrt", marks=needs_jax),
]


def even(stages: int) -> int:
    """Returns the least number of stages, not below `stages`, for which all shards have the same length."""
    return -(-stages // DEVICES) * DEVICES


def of_stage(stages: int, index: int) -> str:
    """Returns a program with the last steps of one stage, as the result of a pipeline. Arguments have even shards."""
    sharding = '<@mesh, [{}, {"stage"}, {}]>'
    whole, some = (f"tensor<{STEPS}x{size}x{ROWS}xf32>" for size in (even(stages), stages))
    return f"""sdy.mesh @mesh = <["stage"={DEVICES}]>
func.func @main(%states: {whole} {{sdy.sharding = #sdy.sharding{sharding}}}) -> tensor<{TAKEN}x{ROWS}xf32> {{
  %0 = stablehlo.slice %states [0:{STEPS}, 0:{stages}, 0:{ROWS}]
      {{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}} : ({whole}) -> {some}
  %1 = stablehlo.tanh %0 : {some}
  %2 = stablehlo.slice %1 [{STEPS - TAKEN}:{STEPS}, {index}:{index + 1}, 0:{ROWS}]
      : ({some}) -> tensor<{TAKEN}x1x{ROWS}xf32>
  %3 = stablehlo.reshape %2 : (tensor<{TAKEN}x1x{ROWS}xf32>) -> tensor<{TAKEN}x{ROWS}xf32>
  %4 = stablehlo.abs %3 : tensor<{TAKEN}x{ROWS}xf32>
  return %4 : tensor<{TAKEN}x{ROWS}xf32>
}}"""


@pytest.mark.parametrize(("collectives", "engine"), TARGETS)
@pytest.mark.parametrize(
    ("stages", "index"),
    [
        pytest.param(4, 3, id="the last of even shards"),
        pytest.param(8, 3, id="in even shards"),
        pytest.param(7, 6, id="in a short shard"),
        pytest.param(5, 4, id="beside an empty shard"),
    ],
)
def test_an_index_of_a_sharded_dimension(collectives: str, engine: str, stages: int, index: int) -> None:
    states = np.random.default_rng(0).standard_normal((STEPS, even(stages), ROWS)).astype(np.float32)
    module = mlir_shard.parse(of_stage(stages, index), mlir_shard.create_context())
    pipelines = Pipelines(spmdize=f"shard-spmdize{{collectives={collectives}}}")
    (result,) = execute(module, [states], pipelines=pipelines, engine=engine)
    np.testing.assert_allclose(result, np.abs(np.tanh(states[STEPS - TAKEN :, index])), rtol=1e-5)

    mlir_shard.run(module, f"builtin.module(spmd-pipeline{{collectives={collectives}}})")
    (collective,) = communication_report(module).collectives
    assert collective.communication.kind is CollectiveKind.ALL_REDUCE
    # The devices sum and gather parts of it.
    assert collective.communication.bytes_received == 2 * (DEVICES - 1) / DEVICES * result.nbytes
