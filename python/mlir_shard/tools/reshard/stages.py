# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of a plan, before it and after each step, with the words that text and pictures put over them."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.tools.reshard import words


@dataclass(frozen=True, slots=True)
class Stage:
    """How the tensor lies, and the step that has brought it there; None before the first."""

    heading: str
    layout: TensorLayout
    step: PlanStep | None = None

    @property
    def placement(self) -> str:
        """The sharding, in sdy's words."""
        return words.placement(self.layout)


def stages(plan: Plan) -> tuple[Stage, ...]:
    """All stages, in order."""
    steps = (Stage(f"{number}. {words.move(step)}", step.after, step) for number, step in enumerate(plan.steps, 1))
    return (Stage("Before", plan.source), *steps)


def step_figures(step: PlanStep) -> str:
    """What a step moves, holds and takes, in a line."""
    if not any(step.bytes_received):
        return f"nothing moves · holds {words.amount(step.memory)}"
    return (
        f"{words.amounts(step.bytes_received)} a device, {words.amount(sum(step.bytes_received))} in all · "
        f"holds {words.amount(step.memory)} · {words.duration(step.time)}"
    )


def totals(plan: Plan) -> tuple[str, ...]:
    """What the whole plan moves, holds and takes, the least there is, and how far it is from that."""
    if not plan.steps:
        return ("Every device holds its box already: nothing to do.",)
    count = plan.num_collectives
    collectives = f"{count} collective{'' if count == 1 else 's'}"
    if plan.total_bytes:
        moved = (
            f"Received: {words.amount(plan.total_bytes)} by all devices in {collectives}, "
            f"{words.amount(plan.bytes_received)} by the one that receives most."
        )
    else:
        moved = f"Received: nothing, in {collectives}."
    bound = plan.bound
    least = (
        f"Lower bound: {words.amount(bound.total)} by all devices, {words.amount(bound.maximum)} by one; "
        f"the plan has {plan.bytes_over_bound:.3f} times the bytes."
    )
    proved = "no plan of these moves is cheaper" if plan.is_optimal else f"at most {plan.gap:.1%} above the best"
    held = f"{words.duration(plan.time)}, and {words.amount(plan.peak_memory)} held at most by a device"
    return moved, least, f"Predicted: {held}; {proved}."
