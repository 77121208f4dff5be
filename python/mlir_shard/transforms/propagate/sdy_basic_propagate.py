# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation without conflict resolution: a tensor takes the axes on which all tensors of an op agree."""

from __future__ import annotations

from mlir_shard.passes.registry import register
from mlir_shard.transforms.propagate.phases import STRATEGIES, Plan
from mlir_shard.transforms.propagate.propagation_pass import PropagationPass


@register
class BasicPropagate(PropagationPass):
    """Propagates the shardings that values have to all others, forward and backward, along the factors of each op's
    sharding rule, until nothing changes.

    A factor is sharded along the longest list of axes that contradicts nothing in any operand or result. An op
    without a rule lets nothing through.
    """

    name = "sdy-basic-propagate"
    summary = "Runs the basic sharding propagation algorithm"

    def plan(self) -> Plan:
        return Plan(STRATEGIES["basic"], conservative=self.conservative_propagation)
