# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation that resolves conflicts: each tensor takes what it can."""

from __future__ import annotations

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register
from mlir_shard.transforms.propagate.phases import STRATEGIES, Plan
from mlir_shard.transforms.propagate.propagation_pass import PropagationPass


@register
class AggressivePropagate(PropagationPass):
    """Propagates like `sdy-basic-propagate`, but lets the tensors of an op differ along a factor: each takes as many
    axes as it can. Of two factors that want the same axis in a tensor, the one has it whose sharding comes from the
    larger tensor.

    That leaves less replicated, at the price of communication where tensors differ.
    """

    name = "sdy-aggressive-propagate"
    summary = "Runs the aggressive sharding propagation algorithm"

    propagation_strategy: str = option("aggressive", "what resolves conflicts, and when", tuple(STRATEGIES))

    def plan(self) -> Plan:
        return Plan(STRATEGIES[self.propagation_strategy], conservative=self.conservative_propagation)
