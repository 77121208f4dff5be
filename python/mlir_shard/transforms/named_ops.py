# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names of operations by how they are partitioned."""

from __future__ import annotations

from typing import Any

from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.builder import rank_of

COLLECTIVES = op_names(
    "sdy",
    "all_gather all_reduce all_slice all_to_all collective_permute reduce_scatter replicated_to_unreduced "
    "sharded_to_unreduced",
)
IDENTITY_OPS = op_names("sdy", "data_flow_edge func_data_flow_edge propagation_barrier reshard sharding_constraint")
"""Operations that set the sharding of their operand and change nothing else."""
# Partial results are reduced where they are made, so that a reduction may have nothing left to do.
RESHARDING_OPS = (*COLLECTIVES, *IDENTITY_OPS)
"""Operations that change the placement of their operand and nothing else."""
DRAWING = "stablehlo.rng"
"""The operation of which each device would draw its own values."""
DIFFERENT_BY_DEVICE = frozenset(
    op_names(
        "stablehlo",
        "all_gather all_reduce all_to_all collective_broadcast collective_permute infeed outfeed partition_id recv "
        "reduce_scatter replica_id rng send",
    )
)
"""Operations that, unchanged, would have another value on each device, or repeat on each an effect meant to be once."""


def differs_by_device(op: Any) -> bool:
    """Returns whether an op, run unchanged by each device, has divergent results or repeats an effect."""
    has_side_effect = "has_side_effect" in op.attributes and op.attributes["has_side_effect"].value
    return has_side_effect or op.name in DIFFERENT_BY_DEVICE or op.name.startswith("shard.")


def makes_only(op: Any) -> bool:
    """Returns whether an op makes its results without tensor operands, uniformly across devices."""
    has_tensors = any(rank_of(value.type) for value in op.operands)
    return not len(op.regions) and not has_tensors and not differs_by_device(op)
