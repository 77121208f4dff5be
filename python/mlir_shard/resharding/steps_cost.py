# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What steps cost altogether, by an objective, and what no steps cost less than."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir_shard.resharding.cost_model import CostModel, Objective
from mlir_shard.resharding.lower_bound import lower_bound
from mlir_shard.resharding.plan import PlanStep, local_elements
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.resharding.traffic import MOST_DEVICES
from mlir_shard.sharding.axes import total_size


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps, their cost in the units of the objective, and what no steps cost less than."""

    steps: tuple[PlanStep, ...]
    cost: float
    least: float


# The cost by the objective, then what decides among equals.
Rank = tuple[float, float, int]


def rank(objective: Objective, seconds: float, received: int, peak: int, count: int) -> Rank:
    """The cost by the objective, then seconds, or for TIME bytes, and the number of steps."""
    if objective is Objective.TIME:
        return seconds, float(received), count
    return float(received if objective is Objective.BYTES else peak), seconds, count


def rank_of(steps: tuple[PlanStep, ...], source: TensorLayout, element_size: int, objective: Objective) -> Rank:
    """The rank of steps that begin at `source`."""
    seconds, received = sum(step.time for step in steps), sum(step.total_bytes for step in steps)
    peak = max((step.memory for step in steps), default=local_elements(source) * element_size)
    return rank(objective, seconds, received, peak, len(steps))


def least_cost(source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel) -> float:
    """What no steps cost less than: the bytes that have to be received, those at the fastest link, or both tensors."""
    if model.objective is Objective.MEMORY:
        return float(max(map(local_elements, (source, target))) * element_size)
    total, most = _least_received(source, target, element_size)
    if model.objective is Objective.BYTES:
        return float(total)
    links = [model.link(axis.name) for mesh in (source.mesh, target.mesh) for axis in mesh.axes if axis.size > 1]
    if not total or not links:
        return 0.0
    return min(link.latency for link in links) + most / max(link.bandwidth for link in links)


def _least_received(source: TensorLayout, target: TensorLayout, element_size: int) -> tuple[int, int]:
    """The bytes that all devices, and the one that does most, have to receive.

    Of many devices that reduce it is what is so wherever their partial values are, see `lower_bound`.
    """
    partials = total_size(reduced_axes(source, target), source.mesh)
    if partials == 1 or source.mesh.total_size <= MOST_DEVICES:
        bound = lower_bound(source, target, element_size)
        return bound.total, bound.maximum
    elements, devices = prod(source.shape), target.mesh.total_size // prod(target.blocks)
    total = elements * (devices + target.partials * (partials - 2))
    return total * element_size, local_elements(target) * element_size


def is_within_memory(steps: tuple[PlanStep, ...], model: CostModel) -> bool:
    """Whether no step needs more memory than a device has."""
    return model.memory_limit is None or all(step.memory <= model.memory_limit for step in steps)
