# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plan as JSON, and its simulation on NumPy arrays with a distinct value for every element."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import numpy as np

from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.simulation import (
    carry_out,
    check_size,
    exchange,
    place,
    reduce_partials,
    without_padding,
)
from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, AllToAll, DirectExchange, Move, ReduceScatter
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.tools.reshard import words
from mlir_shard.tools.reshard.notation import TensorType


def json_text(plan: Plan, tensor: TensorType, delivers: bool | None) -> str:
    """Returns the plan as JSON, with bytes, seconds and devices as numbers and shardings in sdy's syntax.

    `delivers` is the result of a simulation, None without one.
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
    """Returns the axes and dimensions of one move; empty for a collective permute or a direct exchange."""
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


def undelivered(plan: Plan) -> tuple[int, ...]:
    """Returns the devices that do not hold the values of their target boxes after the plan; empty if it is correct.

    Raises ValueError if the tensor is too large to be simulated.
    """
    # Checked before the array of the global tensor is made, which is at most as large as all local arrays together.
    check_size(plan.source)
    shape = (plan.source.partials, *plan.source.shape)
    values = np.arange(prod(shape), dtype=np.int64).reshape(shape)
    blocks = place(values, plan.source)
    for step in plan.steps:
        if isinstance(step.move, DirectExchange):
            blocks = exchange(direct_exchange(step.before, step.after), blocks)
        else:
            tensor = GridTensor(step.grid, step.before.shape, plan.element_size)
            blocks = carry_out(step.move, blocks, step.placement, tensor)
    held = without_padding(blocks, plan.target)
    wanted = without_padding(place(reduce_partials(values, plan.source, plan.target), plan.target), plan.target)
    return tuple(device for device in held if not np.array_equal(held[device], wanted[device]))
