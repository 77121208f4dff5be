# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps between layouts that share no grid: on meshes with other devices at a place, or cut at other sizes."""

from __future__ import annotations

from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.known_courses import layout_axes
from mlir_shard.resharding.link import Link
from mlir_shard.resharding.plan import PlanStep, local_elements, without_single_devices
from mlir_shard.resharding.step_cost import StepCost
from mlir_shard.resharding.step_traffic import StepTraffic
from mlir_shard.resharding.steps import CollectivePermute, DirectExchange, Move
from mlir_shard.resharding.tensor_layout import TensorLayout


def exchange_step(
    source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel, most_messages: int
) -> PlanStep | None:
    """The direct exchange; its move is on the grid of `target`. None where it has too many rounds for its devices."""
    messages = direct_exchange(source, target)
    if messages.num_rounds * source.mesh.total_size > most_messages:
        return None
    traffic = StepTraffic(messages.bytes_received(element_size), messages.bytes_sent(element_size))
    grid = Grid.of(target.mesh, layout_axes(target))
    move = DirectExchange(without_single_devices(grid, grid.placement(target.sharding)))
    link = _slowest(source, target, model)
    time = max(1, messages.num_rounds) * link.latency + max(traffic.received) / link.bandwidth
    return _step(move, grid, source, target, traffic, time, element_size)


def permutation_step(source: TensorLayout, target: TensorLayout, element_size: int, model: CostModel) -> PlanStep:
    """The permutation of devices; its move is on the grid of `target`. ValueError where blocks are others."""
    senders = device_permutation(source, target)
    local, moving = local_elements(source) * element_size, {one for one in senders if senders[one] != one}
    received = tuple(local if device in moving else 0 for device in target.mesh.devices)
    sending = {senders[one] for one in moving}
    traffic = StepTraffic(received, tuple(local if device in sending else 0 for device in target.mesh.devices))
    grid = Grid.of(target.mesh, layout_axes(target))
    move = CollectivePermute(without_single_devices(grid, grid.placement(target.sharding)).dims)
    link = _slowest(source, target, model)
    time = link.latency + max(received) / link.bandwidth if any(received) else 0.0
    return _step(move, grid, source, target, traffic, time, element_size)


def _step(
    move: Move,
    grid: Grid,
    source: TensorLayout,
    target: TensorLayout,
    traffic: StepTraffic,
    time: float,
    element_size: int,
) -> PlanStep:
    memory = (local_elements(source) + local_elements(target)) * element_size
    cost = StepCost(time, max(traffic.received), sum(traffic.received), memory)
    return PlanStep(move, grid, source, target, cost, lambda: traffic)


def _slowest(source: TensorLayout, target: TensorLayout, model: CostModel) -> Link:
    """What messages between any two devices have: the largest latency and the smallest bandwidth of all links."""
    axes = (axis for mesh in (source.mesh, target.mesh) for axis in mesh.axes if axis.size > 1)
    links = [model.link(axis.name) for axis in axes] or [model.default]
    return Link(max(link.latency for link in links), min(link.bandwidth for link in links))
