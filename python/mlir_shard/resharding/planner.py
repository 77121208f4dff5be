# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planner: the cheapest plan that brings a tensor from one layout to another.

It searches all sequences of the moves of `steps` on the mesh, with its axes cut in prime factors where that makes few
enough axes, and else as the two shardings cut them; what it proves holds for all cuts. A direct exchange is the last
move, and where it reduces the only one. A plan is never dearer than Shardy's course.
"""

from __future__ import annotations

from math import prod

from mlir_shard.resharding.cost_model import CostModel
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.known_courses import layout_axes
from mlir_shard.resharding.plan import Plan
from mlir_shard.resharding.same_mesh import SameMeshPlanner
from mlir_shard.resharding.tensor_layout import TensorLayout, reduced_axes
from mlir_shard.resharding.without_common_grid import steps_without_grid

MOST_BYTES = 10**200
"""The bytes of a tensor up to which what many devices hold and receive is counted and timed."""

MOST_MESSAGES = 1 << 16
"""The devices times the rounds up to which a direct exchange is planned: a program has tables of as many entries."""

MOST_STATES = 300
"""The states that a search looks at before it settles for what it has."""


class Planner:
    """Plans by one cost model, kept: the same problem is planned once.

    A dynamic dimension has no plan of its own: give the layouts the size to be assumed. Where the search looks at
    `most_states` states without an end, the plan has a `gap`.

    Args:
        uses_direct_exchange: plan direct exchanges too, where the messages of all devices are at most `most_messages`.
        exchange_reduces: let a direct exchange reduce partial values, which no program does.
        splits_axes: plan moves along sub-axes that neither of the two layouts uses.
    """

    def __init__(
        self,
        cost_model: CostModel | None = None,
        *,
        uses_direct_exchange: bool = True,
        exchange_reduces: bool = False,
        most_messages: int = MOST_MESSAGES,
        splits_axes: bool = True,
        most_states: int = MOST_STATES,
    ) -> None:
        self.cost_model = CostModel() if cost_model is None else cost_model
        self._plans: dict[tuple[TensorLayout, TensorLayout, int], Plan] = {}
        self._costs: dict[tuple[TensorLayout, TensorLayout, int], float] = {}
        self._most_messages = most_messages if uses_direct_exchange else 0
        self._same_mesh = SameMeshPlanner(
            self.cost_model,
            most_states,
            most_messages=self._most_messages,
            exchange_reduces=exchange_reduces,
            splits_axes=splits_axes,
        )

    def plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        """The plan from `source` to `target` of a tensor with elements of `element_size` bytes.

        ValueError where there is none, see `reduced_axes`, or none within the memory of the cost model, or where the
        element size is not positive, or the tensor beyond all measure.
        """
        key = source, target, element_size
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._plan(*key)
        return found

    def cost(self, source: TensorLayout, target: TensorLayout, element_size: int) -> float:
        """The cost of the plan, in units of the objective: seconds or bytes. ValueError as in `plan`.

        It is known sooner than the plan.
        """
        key = source, target, element_size
        if (plan := self._plans.get(key)) is not None:
            return plan.cost
        found = self._costs.get(key)
        if found is None:
            _check(source, target, element_size)
            if self._share_grid(source, target):
                found = self._same_mesh.cost(*key)
            else:
                found = self.plan(*key).cost
            self._costs[key] = found
        return found

    def _plan(self, source: TensorLayout, target: TensorLayout, element_size: int) -> Plan:
        _check(source, target, element_size)
        if self._share_grid(source, target):
            found = self._same_mesh.steps(source, target, element_size)
        else:
            found = steps_without_grid(
                source, target, element_size, self.cost_model, self._same_mesh.steps, most_messages=self._most_messages
            )
        return Plan(source, target, element_size, found.steps, found.cost, found.least)

    def _share_grid(self, source: TensorLayout, target: TensorLayout) -> bool:
        if source.mesh != target.mesh:
            return False
        try:
            Grid.of(source.mesh, layout_axes(source) + layout_axes(target))
        except ValueError:
            return False
        return True


def _check(source: TensorLayout, target: TensorLayout, element_size: int) -> None:
    if element_size <= 0:
        raise ValueError(f"an element has at least 1 byte, not {element_size}")
    reduced_axes(source, target)
    if element_size * prod(source.shape) > MOST_BYTES:
        raise ValueError(f"a tensor of shape {list(source.shape)} is too large: its bytes are not counted")
