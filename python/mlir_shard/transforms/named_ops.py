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
"""Operations that give their operand a sharding, and change nothing else."""
# Partial results are known as such and reduced where they are made, so a reduction may find nothing left to do.
RESHARDING_OPS = (*COLLECTIVES, *IDENTITY_OPS)
"""Operations that change where their operand lies, and nothing else."""
DRAWING = "stablehlo.rng"
"""Each device would draw values of its own."""
DIFFERENT_BY_DEVICE = frozenset(
    op_names(
        "stablehlo",
        "all_gather all_reduce all_to_all collective_broadcast collective_permute infeed outfeed partition_id recv "
        "reduce_scatter replica_id rng send",
    )
)
"""Operations that, left as they are, would get each device a value of its own or do on each what is to be done once."""


def differs_by_device(op: Any) -> bool:
    """Whether devices that run an op as it is get, or do, what one of them should."""
    has_side_effect = "has_side_effect" in op.attributes and op.attributes["has_side_effect"].value
    return has_side_effect or op.name in DIFFERENT_BY_DEVICE or op.name.startswith("shard.")


def makes_only(op: Any) -> bool:
    """Returns whether an op makes its results of no tensors, the same ones on every device."""
    has_tensors = any(rank_of(value.type) for value in op.operands)
    return not len(op.regions) and not has_tensors and not differs_by_device(op)
