# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cheapest reshards around one op: Shardy's choice unless another is cheaper."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.common_axes import AxesPerFactor, MeshAndRef, mesh_of, op_mesh
from mlir_shard.resharding.operator.op_assignment import OpAssignment, cheapest_assignment
from mlir_shard.resharding.operator.op_cost import OpCosts
from mlir_shard.resharding.operator.op_form import KeptShards, OpForm, form_key
from mlir_shard.resharding.operator.op_problem import ComputeCosts, OpProblem
from mlir_shard.resharding.operator.op_reshards import (
    OpKind,
    OpReshards,
    ShardedOp,
    axes_of_factors,
    reshards_around,
    reshards_to,
    with_unshardable_reductions,
)
from mlir_shard.resharding.operator.reshard_prices import OpTensor, PlannedPrices, Reshardings, ReshardPrices
from mlir_shard.resharding.sharding_steps import Meshes
from mlir_shard.sharding import Mesh, ReductionOp, TensorSharding

MOST_CACHED = 4096
"""The ops whose reshards are cached: the least recently used are evicted."""


@dataclass(frozen=True, slots=True)
class PricedReshards:
    """The reshards around an op, None if nothing is resharded, and the seconds to reshard and compute it.

    `resharding_operands` has the part of `cost` that reshards each operand. If nothing was compared, the reshards are
    Shardy's choice, `cost` is None, and `resharding_operands` is empty.
    """

    reshards: OpReshards | None
    cost: float | None = None
    resharding_operands: tuple[float, ...] = ()


class _Form:
    """The form of an op on its mesh, and the reshards around ops of the form, by the axes of their factors."""

    def __init__(self, form: OpForm, mesh: MeshAndRef) -> None:
        self.form, self.mesh = form, mesh
        self.meshes = dict(form.meshes)
        self.by_factor = form.rule, form.projection
        self._reshards: dict[AxesPerFactor, OpReshards | None] = {}

    @staticmethod
    def of(op: ShardedOp, listed: tuple[tuple[str, Mesh], ...]) -> _Form | None:
        """Returns the form of an op; None if the mesh is empty or shardings have unreduced axes or no common mesh."""
        shardings = (*op.operands, *op.results)
        found = op_mesh(shardings, dict(listed))
        if found is None or found[1].is_empty or any(one is not None and one.unreduced_axes for one in shardings):
            return None
        rule = op.rule if op.reducible else with_unshardable_reductions(op.rule)
        return _Form(OpForm(rule, shardings, found[1], listed), found)

    def problem(self, op: ShardedOp, tensors: tuple[OpTensor, ...], reduction: ReductionOp) -> OpProblem:
        """Returns the problem of an op of the form."""
        indexes, shared = op.kind is OpKind.INDEXING, (op.summands, op.iterations)
        return OpProblem(self.form, op.rule.factor_sizes, tensors, reduction, op.windows, indexes, *shared)

    def reshards(self, op: ShardedOp, axes_per_factor: AxesPerFactor) -> OpReshards | None:
        """Returns the reshards around an op of the form that give its tensors these axes."""
        if axes_per_factor not in self._reshards:
            found = reshards_to(op, axes_per_factor, self.mesh, self.meshes, self.by_factor)
            self._reshards[axes_per_factor] = found
        return self._reshards[axes_per_factor]


class CheapestReshards:
    """Chooses the reshards around ops, by their cost and by how fast devices compute.

    The choice depends on the arguments alone, not on the ops before, and is cached.
    """

    def __init__(self, prices: ReshardPrices, rates: DeviceRates | None = None) -> None:
        self._reshardings = Reshardings(prices)
        self.rates = DeviceRates() if rates is None else rates
        self._forms: dict[Hashable, _Form | None] = {}
        self._cached_around = lru_cache(maxsize=MOST_CACHED)(self._around)

    def around(
        self, op: ShardedOp, tensors: tuple[OpTensor, ...], reduction: ReductionOp, meshes: Mapping[str, Mesh]
    ) -> PricedReshards:
        """Returns the cheapest reshards for an op with these operands and results, in this order, and this reduction.

        Shardy's choice is returned unless another is cheaper, and without a comparison if tensors are partial, axes
        share no grid or are too many, or, except for reshapes, axes do not divide their factors. Raises ReshardError
        as `reshards_around` does.
        """
        return self._cached_around(op, tensors, reduction, tuple(meshes.items()))

    def _around(
        self, op: ShardedOp, tensors: tuple[OpTensor, ...], reduction: ReductionOp, listed: tuple[tuple[str, Mesh], ...]
    ) -> PricedReshards:
        form = self._form(op, listed)
        if form is None or any(size < 0 for tensor in tensors for size in tensor.shape):
            return PricedReshards(reshards_around(op, dict(listed), full=True))
        problem = form.problem(op, tensors, reduction)
        cost = self._cost_if_kept(problem)
        if cost is not None:
            return PricedReshards(None, cost, (0.0,) * len(op.operands))
        if form.form.tensors_with_overflow and op.kind is not OpKind.RESHAPE:
            return PricedReshards(reshards_around(op, form.meshes, full=True))
        costs = OpCosts(problem, axes_of_factors(op, form.mesh, form.by_factor), self._reshardings, self.rates)
        try:
            best = cheapest_assignment(problem, costs)
        except ValueError:
            return PricedReshards(reshards_around(op, form.meshes, full=True))
        if best.stays:
            return PricedReshards(None, best.cost, (0.0,) * len(op.operands))
        return PricedReshards(form.reshards(op, best.axes_per_factor), best.cost, _of_operands(op, costs, best))

    def _form(self, op: ShardedOp, listed: tuple[tuple[str, Mesh], ...]) -> _Form | None:
        """Returns the form of an op; None if the mesh is empty or shardings have unreduced axes or no common mesh."""
        key = form_key(op.rule), op.reducible, op.kind, op.operands, op.results, listed
        if key not in self._forms:
            if len(self._forms) >= MOST_CACHED:
                self._forms.clear()
            self._forms[key] = _Form.of(op, listed)
        return self._forms[key]

    def kept_shards(
        self, op: ShardedOp, tensors: tuple[OpTensor, ...], meshes: Mapping[str, Mesh]
    ) -> KeptShards | None:
        """Returns the shards of ops of the form of this one around which nothing is resharded, if they are cheapest.

        They are cheapest for the sizes for which `ComputeCosts.cost_if_least` returns a cost, with `rates` and
        `move_latency`. Returns None if the form has no such shards.
        """
        form = self._form(op, tuple(meshes.items()))
        if form is None or op.kind is OpKind.INDEXING:
            return None
        return form.form.kept_shards(op.rule.factor_sizes, [tensor.shape for tensor in tensors])

    @property
    def move_latency(self) -> float:
        """The least latency of a reshard, in seconds."""
        return self._reshardings.least_latency

    def _cost_if_kept(self, problem: OpProblem) -> float | None:
        """Returns the cost of an op around which nothing is resharded or reduced, if it is proved minimal, or None."""
        kept = problem.form.kept_axes
        if kept is None:
            return None
        return ComputeCosts(problem, self.rates).cost_if_least(kept, 0.0, self.move_latency)

    def between(
        self, source: TensorSharding | None, target: TensorSharding | None, tensor: OpTensor, meshes: Meshes
    ) -> float | None:
        """Returns the seconds to bring a tensor from one sharding to another; None if they cannot be computed."""
        found = op_mesh((source, target), meshes)
        if found is None:
            return 0.0 if source is None and target is None else None
        ends = []
        for one in (source, target):
            mesh = None if one is None or one.is_fully_replicated else mesh_of(one, meshes)
            ends.append((one, found[1] if mesh is None else mesh))
        try:
            return self._reshardings.price(ends[0], ends[1], tensor).seconds
        except ValueError:
            return None


@lru_cache(maxsize=1)
def shared_cheapest_reshards() -> CheapestReshards:
    """Returns the choices by the planner's prices, with a cache that all programs of the process share."""
    return CheapestReshards(PlannedPrices())


def _of_operands(op: ShardedOp, costs: OpCosts, best: OpAssignment) -> tuple[float, ...]:
    return tuple(costs.tensor_price(index, best.axes_per_factor).seconds for index in range(len(op.operands)))
