# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation in phases, through ops that merely pass a tensor on before all others."""

from __future__ import annotations

from dataclasses import replace

from mlir_shard.passes.options import option
from mlir_shard.passes.registry import register
from mlir_shard.transforms.propagate.op_schedule import PHASES
from mlir_shard.transforms.propagate.phases import Plan
from mlir_shard.transforms.propagate.sdy_aggressive_propagate import AggressivePropagate


@register
class OpPriorityPropagate(AggressivePropagate):
    """Propagates like `sdy-aggressive-propagate`, several times over, each time through more ops and in more
    directions than before: first through elementwise ops and the like, where no operand has another use, last through
    all ops and both ways.
    """

    name = "sdy-op-priority-propagate"
    summary = "Runs the op-priority propagation algorithm"

    run_op_priority_propagation: bool = option(True, "go by the priorities of ops")

    def plan(self) -> Plan:
        plan = super().plan()
        return replace(plan, phases=PHASES) if self.run_op_priority_propagation else plan
