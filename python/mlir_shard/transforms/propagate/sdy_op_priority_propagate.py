# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation in phases, through ops that merely pass a tensor on before all others."""

from __future__ import annotations

from dataclasses import replace

from mlir_shard.dialects.registered_function import RegistrationError
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import PassFailure, register
from mlir_shard.rules.registry import check_order, is_among, op_priorities
from mlir_shard.transforms.propagate.op_schedule import phases
from mlir_shard.transforms.propagate.phases import Plan
from mlir_shard.transforms.propagate.sdy_aggressive_propagate import AggressivePropagate


@register
class OpPriorityPropagate(AggressivePropagate):
    """Propagates like `sdy-aggressive-propagate`, several times over, each time through more ops and in more
    directions than before: first through elementwise ops and the like, where no operand has another use, last through
    all ops and both ways.

    Ops in `op-priorities` come before all these, and before those a dialect has registered: one after the other, or
    several together where they are in braces.
    """

    name = "sdy-op-priority-propagate"
    summary = "Runs the op-priority propagation algorithm"

    run_op_priority_propagation: bool = option(True, "go by the priorities of ops")
    op_priorities: tuple[tuple[str, ...], ...] = option(
        (), "ops that propagate before all others, in this order: dialect.op, dialect.*, or several in braces"
    )

    def plan(self) -> Plan:
        plan = super().plan()
        if self.run_op_priority_propagation:
            order = self._order()
            return replace(plan, phases=phases(order), by_op_name=bool(order))
        if self.op_priorities:
            raise PassFailure("op-priorities are given, but run-op-priority-propagation=false has them not count")
        return plan

    def _order(self) -> list[tuple[str, ...]]:
        try:
            check_order(self.op_priorities)
        except RegistrationError as error:
            raise PassFailure(f"op-priorities: {error}") from error
        for group in self.op_priorities:
            for name in group:
                _check_is_op(name)
        registered = [
            tuple(name for name in group if not any(is_among(name, own) for own in self.op_priorities))
            for group in op_priorities()
        ]
        return [*self.op_priorities, *filter(None, registered)]


def _check_is_op(name: str) -> None:
    """Raises PassFailure for the name of an op that no program here can hold."""
    context = ir.Context.current
    if context.allow_unregistered_dialects or name.endswith(".*") or context.is_registered_operation(name):
        return
    raise PassFailure(f"op-priorities: there is no op '{name}' here: no dialect that is loaded has one of this name")
