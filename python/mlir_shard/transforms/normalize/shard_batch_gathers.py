# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass `shard-batch-gathers`."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import FunctionPass, register
from mlir_shard.transforms.normalize.batching_indices import GATHER, SCATTER, number_of_indices, with_batching


@register
class BatchGathers(FunctionPass):
    """Replaces indices of gathers and scatters that equal their positions by batching dimensions.

    Front ends often index all dimensions of a tensor, those of the batch by an iota: `x[arange(n), i]`. Each element of
    the indices then selects from the part of the operand at its own position. As a batching dimension, such a dimension
    can be sharded without communication. GSPMD calls them parallel dimensions (Xu et al., GSPMD, 2021).

    An iota is recognized also after conversions, broadcasts, reshapes, clamps and the correction of negative indices.
    Unlike `sdy-explicit-gather-scatter-batching`, the pass supports every dimension, and several at once.
    """

    name = "shard-batch-gathers"
    summary = "Replaces indices that equal their positions by batching dimensions"
    needs = (GATHER, SCATTER)

    def run(self, function: Any) -> bool:
        changed = False
        for op in operations_named(function, GATHER, SCATTER):
            found = None if sdy.SHARDING_RULE in op.attributes else with_batching(op)
            if found is not None:
                op.operands[number_of_indices(op)], numbers = found
                numbers.set_on(op)
                changed = True
        return changed
