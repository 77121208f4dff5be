# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares collectives of all kinds on MPI ranks with their definitions, in one program for each number of ranks.

`python -m collectives_on_ranks` runs all of them; this test always runs the same part.
"""

from __future__ import annotations

import pytest
from collectives_on_ranks import cases, run
from collectives_on_ranks.case import Case, Grid
from runtime.launchers import installation
from runtime.local_program import needs_mpich

from mlir_shard.runtime.arrays import TensorSpec

_COLLECTIVES = 40
KINDS = (
    {"all_gather", "all_reduce", "all_slice", "all_to_all", "broadcast", "gather", "reduce", "reduce_scatter"}
    | {"scatter", "shift", "send, recv"}
    | {"indices", "update_halo"}
)


@needs_mpich
@pytest.mark.parametrize(("mpi", "ranks"), [*(("mpich", ranks) for ranks in cases.GRIDS), ("openmpi", 6)])
def test_collectives_are_what_they_are_defined_to_be(mpi: str, ranks: int) -> None:
    tried = cases.some_cases(ranks, 1, _COLLECTIVES)
    assert {case.name for case in tried} == KINDS
    failed = run.failures(tried, ranks, mpi=installation(mpi))
    assert not failed, "\n".join(map(str, failed))


@needs_mpich
def test_a_wrong_result_is_a_failure() -> None:
    grid, spec = Grid((2,), (0,)), TensorSpec((3,), "f32")
    text = f"%{{r}} = shard.broadcast {{a}} on @{{g}} grid_axes = [0] root = [1] : ({spec}) -> {spec}"
    (failed,) = run.failures([Case("broadcast", grid, spec, spec, text, dict)], 2)
    assert failed.device == 0
    assert str(failed).startswith("broadcast on 2 along [0]: tensor<3xf32>, device 0: ")


def test_all_axes_of_all_grids_are_tried() -> None:
    tried = {(case.grid.shape, case.grid.axes) for case in cases.every_case(8, 1)}
    assert len(tried) == sum(len(cases.axes_in_every_order(grid)) for grid in cases.GRIDS[8]) == 2 + 5 + 16
