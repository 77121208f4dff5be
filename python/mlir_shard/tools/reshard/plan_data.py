# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as data: what the report says, of every device and every step, as JSON."""

from __future__ import annotations

import json
from typing import Any

from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, AllToAll, Move, ReduceScatter
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.notation import TensorType


def json_text(plan: Plan, tensor: TensorType, delivers: bool | None) -> str:
    """The plan; bytes, seconds and devices as numbers, shardings as sdy writes them.

    `delivers` is what a simulation has found, None without one.
    """
    bound = plan.bound
    data = {
        "tensor": str(tensor),
        "before": _layout(plan.source),
        "after": _layout(plan.target),
        "steps": [_step(step) for step in plan.steps],
        "bytes_received": {"all": plan.total_bytes, "most": plan.bytes_received},
        "lower_bound": {"all": bound.total, "most": bound.maximum, "per_device": list(bound.per_device)},
        "collectives": plan.num_collectives,
        "memory": plan.peak_memory,
        "time": plan.time,
        "cost": plan.cost,
        "cost_bound": plan.cost_bound,
    }
    if delivers is not None:
        data["delivers"] = delivers
    return json.dumps(data) + "\n"


def _layout(layout: TensorLayout) -> dict[str, Any]:
    boxes = {
        str(device): [list(interval) for interval in zip(box.start, box.stop, strict=True)]
        for device, box in layout.device_boxes().items()
    }
    return {"mesh": str(layout.mesh), "sharding": words.placement(layout), "boxes": boxes}


def _step(step: PlanStep) -> dict[str, Any]:
    return {
        "move": words.move_name(step.move),
        "parts": [_part(step, part) for part in words.move_parts(step.move)],
        "sharding": words.placement(step.after),
        "bytes_received": list(step.bytes_received),
        "bytes_sent": list(step.bytes_sent),
        "memory": step.memory,
        "time": step.time,
    }


def _part(step: PlanStep, part: Move) -> dict[str, Any]:
    """The axes and dimensions of one move, none for a permutation or an exchange of all there is."""
    said: dict[str, Any] = {}
    if isinstance(part, AllGather | AllReduce | AllSlice | AllToAll | ReduceScatter):
        said["axes"] = [str(axis) for axis in words.move_axes(step, part)]
    if isinstance(part, AllGather | AllSlice | ReduceScatter):
        said["dimension"] = part.dim
    if isinstance(part, AllToAll):
        said |= {"from_dimension": part.source_dim, "to_dimension": part.target_dim}
    if isinstance(part, AllReduce | ReduceScatter):
        said["reduction"] = part.reduction.value
    return said
