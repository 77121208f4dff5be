# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The aggressive strategy of propagation: every tensor takes along each factor what it can, conflicts resolved.

Where two factors want the same axis in one tensor, the one whose sharding comes from the larger tensor has it, as
resharding the smaller one costs less. The strategy, and each decision in it, is that of Shardy's aggressive factor
propagation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.axis_lists import Axes, is_strict_prefix, total_size
from mlir_shard.sharding.basic_propagation import (
    Directions,
    allowed_directions,
    compatible_major_axes,
    prefix_beside_other_factors,
    prefix_within_factor,
    truncate,
)
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.projection import ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import OpShardingRule


def propagate_aggressive(
    projection: ShardingProjection,
    rule: OpShardingRule,
    mesh: Mesh,
    directions: Directions,
    *,
    conservative: bool = False,
    elementwise: bool = False,
) -> ShardingProjection:
    """The projection with each factor's axes in every tensor as far as that tensor can take them.

    A conservative propagation leaves out sub-axes. Through an elementwise op, of two factors from tensors of the same
    size the more sharded one comes first, and an operand takes from another no more than the results have.
    """
    axes_per_factor = tuple(
        compatible_major_axes(projection, factor, direction)
        for factor, direction in enumerate(allowed_directions(rule, directions))
    )
    if not _may_expand(projection, axes_per_factor):
        return projection
    step = _Step(axes_per_factor, rule.factor_sizes, mesh, conservative)
    order = step.order(projection, elementwise)
    first_result = len(projection.operands)
    for index in (*range(first_result, len(projection.tensors)), *range(first_result)):
        limits = projection.results if elementwise and index < first_result else ()
        tensor = step.expanded(projection.tensors[index], order, limits)
        if tensor is not projection.tensors[index]:
            projection = projection.replace_tensor(index, tensor)
    return projection


def _may_expand(projection: ShardingProjection, axes_per_factor: Sequence[Axes]) -> bool:
    """Whether there is a tensor that is sharded less along some factor than it is to be: mostly there is none."""
    return any(
        axes and sharding is not None and is_strict_prefix(sharding.axes, axes)
        for tensor in projection.tensors
        for sharding, axes in zip(tensor.factors, axes_per_factor, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """The axes that are to go along each factor, and what they go through."""

    axes_per_factor: tuple[Axes, ...]
    factor_sizes: tuple[int, ...]
    mesh: Mesh
    conservative: bool

    def order(self, projection: ShardingProjection, elementwise: bool) -> list[int]:
        """The factors that have axes, those first that win a conflict."""
        sources = self._largest_sources(projection)

        def key(factor: int) -> tuple[int, int, int, int]:
            size, index = sources[factor]
            sharded = total_size(self.axes_per_factor[factor], self.mesh) if elementwise else 0
            return -size, -sharded, index, factor

        return sorted((factor for factor, axes in enumerate(self.axes_per_factor) if axes), key=key)

    def _largest_sources(self, projection: ShardingProjection) -> list[tuple[int, int]]:
        """For each factor the size and the index of the largest tensor that has all its axes; -1 without one."""
        sources = [(-1, -1)] * len(self.factor_sizes)
        for index, tensor in enumerate(projection.tensors):
            size = prod(self.factor_sizes[factor] for factor, _ in _factors(tensor))
            for factor, own in _factors(tensor):
                axes = self.axes_per_factor[factor]
                if axes and size > sources[factor][0] and (axes == own or is_strict_prefix(axes, own)):
                    sources[factor] = (size, index)
        return sources

    def expanded(
        self, tensor: TensorFactorShardings, order: Sequence[int], limits: Sequence[TensorFactorShardings]
    ) -> TensorFactorShardings:
        """The tensor with what it can take along each factor, and no more than each of `limits` that has the factor."""
        for factor in order:
            axes = self._fitting(tensor, factor)
            for limit in limits:
                sharding = limit.factors[factor]
                if sharding is not None and is_strict_prefix(sharding.axes, axes):
                    axes = sharding.axes
            tensor = tensor.expand(factor, axes)
        return tensor

    def _fitting(self, tensor: TensorFactorShardings, factor: int) -> Axes:
        """What the tensor can take along the factor; none where that is no more than it has."""
        sharding = tensor.factors[factor]
        if sharding is None or not is_strict_prefix(sharding.axes, self.axes_per_factor[factor]):
            return ()

        def within(axis: AxisRef, sharded_size: int) -> AxisRef | None:
            return prefix_within_factor(axis, tensor, factor, sharded_size, self.factor_sizes[factor], self.mesh)

        def beside(axis: AxisRef, sharded_size: int) -> AxisRef | None:
            return prefix_beside_other_factors(axis, tensor, factor)

        axes = truncate(self.axes_per_factor[factor], within, self.mesh, conservative=self.conservative)
        if not is_strict_prefix(sharding.axes, axes):
            return ()
        return truncate(axes, beside, self.mesh, conservative=self.conservative)


def _factors(tensor: TensorFactorShardings) -> Iterator[tuple[int, Axes]]:
    return ((factor, sharding.axes) for factor, sharding in enumerate(tensor.factors) if sharding is not None)
