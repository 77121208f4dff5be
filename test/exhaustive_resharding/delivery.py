# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides if a plan delivers, by executing its steps on elements that are all different.

The effect of a step depends only on the step and on the layout before it. So each distinct step is simulated once, on
values placed in that layout with not-a-numbers for padding. A plan delivers if and only if each of its steps takes the
boxes of the layout before it to those of the layout after it, the first step begins at the source, each other step
begins where the previous one ends, and the last step ends at the target.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mlir_shard.resharding import simulation
from mlir_shard.resharding.device_permutation import device_permutation
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.grid_tensor import GridTensor
from mlir_shard.resharding.plan import Plan, PlanStep
from mlir_shard.resharding.simulation import Array, Blocks
from mlir_shard.resharding.steps import CollectivePermute, DirectExchange
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding.layout import Box, device_box, unreduced_index


class Deliveries:
    """The simulated steps of plans for tensors of one shape."""

    def __init__(self) -> None:
        self._faults: dict[tuple[Any, ...], str | None] = {}
        self._held: dict[TensorLayout, tuple[Array, Blocks]] = {}
        self._boxes: dict[TensorLayout, list[tuple[int, Box, int]]] = {}

    @property
    def num_simulated(self) -> int:
        """The number of distinct steps."""
        return len(self._faults)

    def fault(self, plan: Plan, source: TensorLayout, target: TensorLayout) -> str | None:
        """Returns the reason why a plan does not carry a tensor from source to target, or None."""
        at = source
        for step in plan.steps:
            if not self._lies_alike(step.before, at):
                return f"{step.move} begins at {step.before.sharding}, where the tensor lies as {at.sharding}"
            if fault := self._fault_of_step(step, plan.element_size):
                return f"{step.move} from {step.before.sharding} to {step.after.sharding}: {fault}"
            at = step.after
        return None if self._lies_alike(at, target) else f"the tensor ends as {at.sharding}"

    def _lies_alike(self, one: TensorLayout, other: TensorLayout) -> bool:
        """Returns True if each device holds equal boxes of the same partial value, in local tensors of one shape."""
        if one is other or one == other:
            return True
        if one.partials > 1 and one.sharding.reduction_op is not other.sharding.reduction_op:
            return False
        return one.local_shape == other.local_shape and self._held_by(one) == self._held_by(other)

    def _held_by(self, layout: TensorLayout) -> dict[int, tuple[Box | None, int]]:
        return {device: (None if box.is_empty else box, partial) for device, box, partial in self._boxes_of(layout)}

    def _fault_of_step(self, step: PlanStep, element_size: int) -> str | None:
        key = (step.move, step.grid, step.before, step.after)
        if key not in self._faults:
            self._faults[key] = self._simulated(step, element_size)
        return self._faults[key]

    def _simulated(self, step: PlanStep, element_size: int) -> str | None:
        values, held = self._values_held(step.before)
        found = _carried_out(step, held, element_size)
        wanted = simulation.reduce_partials(values, step.before, step.after)
        if sorted(found) != sorted(step.after.mesh.devices):
            return f"devices {sorted(found)} hold something"
        for device, box, partial in self._boxes_of(step.after):
            block = found[device]
            if block.shape != step.after.local_shape:
                return f"device {device} holds a block of shape {list(block.shape)}"
            if not np.array_equal(block[box.local_slices], wanted[partial][box.slices]):
                return f"device {device} lacks something of {box}"
        return None

    def _values_held(self, layout: TensorLayout) -> tuple[Array, Blocks]:
        """Returns distinct values, and the read-only parts of them that devices hold."""
        if layout not in self._held:
            values = distinct_values(layout)
            held = {}
            for device, box, partial in self._boxes_of(layout):
                held[device] = np.full(layout.local_shape, np.nan)
                held[device][box.local_slices] = values[partial][box.slices]
                held[device].flags.writeable = False
            self._held[layout] = values, held
        return self._held[layout]

    def _boxes_of(self, layout: TensorLayout) -> list[tuple[int, Box, int]]:
        """Returns each device with its box and the number of its partial value, in the order of the mesh."""
        if layout not in self._boxes:
            sharding, mesh = layout.sharding, layout.mesh
            self._boxes[layout] = [
                (device, device_box(sharding, mesh, layout.shape, device), unreduced_index(sharding, mesh, device))
                for device in mesh.devices
            ]
        return self._boxes[layout]


def distinct_values(layout: TensorLayout) -> Array:
    """Returns a tensor for each partial value. All elements differ, sums are exact, and equal sums are unlikely."""
    count = layout.partials * prod(layout.shape)
    values = np.random.default_rng(0).integers(0, 1 << 44, count)
    assert len(np.unique(values)) == count
    return values.astype(np.float64).reshape((layout.partials, *layout.shape))


def _carried_out(step: PlanStep, held: Blocks, element_size: int) -> Blocks:
    # Both also handle meshes with reordered devices, and the exchange handles parts of axes without a common grid.
    if isinstance(step.move, DirectExchange):
        return simulation.exchange(direct_exchange(step.before, step.after), held)
    if isinstance(step.move, CollectivePermute):
        return simulation.collective_permute(held, device_permutation(step.before, step.after))
    tensor = GridTensor(step.grid, step.before.shape, element_size)
    return simulation.carry_out(step.move, held, step.placement, tensor)
