# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Projection of the shardings of an op's tensors to the factors of its rule, and back.

The axes of a dimension are split at the borders of its factors: with ([ij])->([i, j]) {i=2, j=4} and a mesh
<["x"=4, "y"=2]>, {"x", "y"} on the operand is "x":(1)2 along i and "x":(2)2, "y" along j. Propagation changes axes
along factors. The projection back joins factors to dimensions, where a factor counts only if those to its left are
fully sharded (anything else would need a strided view of the tensor). The idea is Shardy's sharding projection.

All values are immutable: a change returns a new value, and `is` shows whether there was a change. Classes with many
instances are tuples, which take less time to create than dataclasses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd
from operator import is_
from typing import NamedTuple

from mlir_shard.sharding.axes import (
    Axes,
    AxisRef,
    add_axes_or_merge,
    axes_difference,
    greatest_common_prefix,
    is_strict_prefix,
    total_size,
)
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.rule import DimMapping, OpShardingRule, TensorMapping
from mlir_shard.sharding.tensor import DimensionSharding, ReductionOp, TensorSharding


class FactorSharding(NamedTuple):
    """The axes that shard one factor of one tensor.

    `overflow_axes` follow `axes` in the dimension but do not divide the factor further, which happens in a factor that
    is not the minor-most of its dimension. They are kept to restore the dimension, and no axis can follow them.
    """

    axes: Axes = ()
    is_closed: bool = False
    is_minor_most: bool = False
    overflow_axes: Axes = ()

    @property
    def all_axes(self) -> Axes:
        """The axes and the overflow axes."""
        return self.axes + self.overflow_axes


class TensorFactorShardings(NamedTuple):
    """The sharding of a tensor by factor. `factors[i]` is None if the tensor does not have factor i."""

    factors: tuple[FactorSharding | None, ...]
    replicated_axes: Axes = ()
    unreduced_axes: Axes = ()
    reduction_op: ReductionOp = ReductionOp.SUM

    @staticmethod
    def project(
        sharding: TensorSharding | None,
        mapping: TensorMapping,
        factor_sizes: Sequence[int],
        mesh: Mesh,
        *,
        closed_if_missing: bool = False,
    ) -> TensorFactorShardings:
        """Projects a sharding to the factors. Without a sharding the result is empty, closed if `closed_if_missing`.

        Raises ValueError if the ranks of the sharding and the mapping differ.
        """
        if sharding is not None and sharding.rank != mapping.rank:
            raise ValueError(f"a sharding of rank {sharding.rank} does not fit a mapping of rank {mapping.rank}")
        factors: list[FactorSharding | None] = [None] * len(factor_sizes)
        missing = DimensionSharding((), closed_if_missing)
        for dim, of in enumerate(mapping.dim_mappings):
            dim_sharding = missing if sharding is None else sharding.dim_shardings[dim]
            if len(of.factor_indices) == 1:
                factors[of.factor_indices[0]] = FactorSharding(dim_sharding.axes, dim_sharding.is_closed, True)
                continue
            for factor, factor_sharding in cut_dimension(dim_sharding, of, factor_sizes, mesh):
                factors[factor] = factor_sharding
        if sharding is None:
            return TensorFactorShardings(tuple(factors))
        return TensorFactorShardings(
            tuple(factors), sharding.replicated_axes, sharding.unreduced_axes, sharding.reduction_op
        )

    def to_sharding(
        self, mapping: TensorMapping, factor_sizes: Sequence[int], mesh_or_ref: str | Mesh, mesh: Mesh
    ) -> TensorSharding:
        """Returns the sharding by dimension, without the priorities of the user's sharding.

        Axes of factors are removed from the replicated axes.
        """
        dims = tuple([self.join_dimension(of, factor_sizes, mesh) for of in mapping.dim_mappings])
        replicated = self.replicated_axes
        if replicated:
            replicated = axes_difference(replicated, [axis for dim in dims for axis in dim.axes], mesh)
        return TensorSharding(mesh_or_ref, dims, replicated, self.unreduced_axes, self.reduction_op)

    def join_dimension(self, mapping: DimMapping, factor_sizes: Sequence[int], mesh: Mesh) -> DimensionSharding:
        """Returns the sharding of a dimension, joined from those of its factors."""
        # Most dimensions have one factor.
        if len(mapping.factor_indices) == 1:
            only = self.factors[mapping.factor_indices[0]]
            if only is not None:
                return DimensionSharding(add_axes_or_merge((), only.all_axes, mesh), only.is_closed)
        factors: list[FactorSharding] = []
        for factor in mapping.factor_indices:
            sharding = self.factors[factor]
            if sharding is None:
                raise ValueError(f"the tensor has no factor {factor}, which its mapping {mapping} contains")
            factors.append(sharding)
        return join_factors(factors, [factor_sizes[factor] for factor in mapping.factor_indices], mesh)

    def sharding_size(self, mesh: Mesh) -> int:
        """Returns the number of shards of the tensor, over all factors together."""
        return total_size((axis for factor in self.factors if factor is not None for axis in factor.all_axes), mesh)

    def expand(self, factor: int, axes: Axes) -> TensorFactorShardings:
        """Sets `axes` along the factor if the tensor has it and its present axes are a strict prefix of `axes`."""
        old = self.factors[factor]
        if old is None or not is_strict_prefix(old.axes, axes):
            return self
        return self._with_factor(factor, FactorSharding(axes, old.is_closed, old.is_minor_most, old.overflow_axes))

    def update(self, factor: int, axes: Axes, overflow_axes: Axes = ()) -> TensorFactorShardings:
        """Replaces the axes along the factor by `axes` and `overflow_axes`, if the tensor has the factor."""
        old = self.factors[factor]
        if old is None or (old.axes == axes and old.overflow_axes == overflow_axes):
            return self
        return self._with_factor(factor, FactorSharding(axes, old.is_closed, old.is_minor_most, overflow_axes))

    def _with_factor(self, factor: int, sharding: FactorSharding) -> TensorFactorShardings:
        factors = (*self.factors[:factor], sharding, *self.factors[factor + 1 :])
        return TensorFactorShardings(factors, self.replicated_axes, self.unreduced_axes, self.reduction_op)


@dataclass(frozen=True, slots=True)
class ShardingProjection:
    """The shardings of all operands and results of an op by factor."""

    operands: tuple[TensorFactorShardings, ...]
    results: tuple[TensorFactorShardings, ...]

    @staticmethod
    def build(
        operands: Sequence[TensorSharding | None],
        results: Sequence[TensorSharding | None],
        rule: OpShardingRule,
        mesh: Mesh,
        *,
        closed_if_missing: bool = False,
    ) -> ShardingProjection:
        """Projects shardings by the rule; None is a tensor without a sharding."""

        def project(
            shardings: Sequence[TensorSharding | None], mappings: Sequence[TensorMapping]
        ) -> tuple[TensorFactorShardings, ...]:
            return tuple(
                TensorFactorShardings.project(
                    sharding, mapping, rule.factor_sizes, mesh, closed_if_missing=closed_if_missing
                )
                for sharding, mapping in zip(shardings, mappings, strict=True)
            )

        return ShardingProjection(project(operands, rule.operand_mappings), project(results, rule.result_mappings))

    @staticmethod
    def of_factors(axes_per_factor: Sequence[Axes], rule: OpShardingRule) -> ShardingProjection:
        """Returns the projection with the same axes of each factor in every tensor, closed and without overflow."""

        def tensor(mapping: TensorMapping) -> TensorFactorShardings:
            factors: list[FactorSharding | None] = [None] * rule.num_factors
            for dim in mapping.dim_mappings:
                for factor in dim.factor_indices:
                    factors[factor] = FactorSharding(axes_per_factor[factor], True, dim.is_minor_most(factor))
            return TensorFactorShardings(tuple(factors))

        return ShardingProjection(tuple(map(tensor, rule.operand_mappings)), tuple(map(tensor, rule.result_mappings)))

    @property
    def tensors(self) -> tuple[TensorFactorShardings, ...]:
        """The operands, then the results."""
        return self.operands + self.results

    def replace_tensor(self, index: int, tensor: TensorFactorShardings) -> ShardingProjection:
        """Replaces the sharding of the tensor at `index` of `tensors`."""
        return self._with_tensors((*self.tensors[:index], tensor, *self.tensors[index + 1 :]))

    def expand(self, factor: int, axes: Axes) -> ShardingProjection:
        """Expands every tensor along the factor (see `TensorFactorShardings.expand`)."""
        return self._with_tensors([tensor.expand(factor, axes) for tensor in self.tensors])

    def update(self, factor: int, axes: Axes, overflow_axes: Axes = ()) -> ShardingProjection:
        """Updates every tensor along the factor (see `TensorFactorShardings.update`)."""
        return self._with_tensors([tensor.update(factor, axes, overflow_axes) for tensor in self.tensors])

    def replaced(
        self, operands: tuple[TensorFactorShardings, ...], results: tuple[TensorFactorShardings, ...]
    ) -> ShardingProjection:
        """Replaces the shardings of all tensors. Returns `self` if all are the same objects as before."""
        if all(map(is_, operands, self.operands)) and all(map(is_, results, self.results)):
            return self
        return ShardingProjection(operands, results)

    def _with_tensors(self, tensors: Sequence[TensorFactorShardings]) -> ShardingProjection:
        count = len(self.operands)
        return self.replaced(tuple(tensors[:count]), tuple(tensors[count:]))

    def common_prefix_axes(self) -> tuple[Axes, ...]:
        """Returns for each factor the common prefix of the axes of all tensors that have it."""
        common: dict[int, Axes] = {}
        for tensor in self.tensors:
            for factor, sharding in enumerate(tensor.factors):
                if sharding is not None:
                    before = common.get(factor, sharding.axes)
                    common[factor] = greatest_common_prefix(before, sharding.axes)
        count = max((len(tensor.factors) for tensor in self.tensors), default=0)
        return tuple(common.get(factor, ()) for factor in range(count))

    @property
    def tensors_with_overflow(self) -> tuple[int, ...]:
        """The positions in `tensors` of the tensors that have overflow axes."""
        return tuple(
            index
            for index, tensor in enumerate(self.tensors)
            if any(factor is not None and factor.overflow_axes for factor in tensor.factors)
        )

    def to_shardings(
        self, rule: OpShardingRule, mesh_or_ref: str | Mesh, mesh: Mesh
    ) -> tuple[tuple[TensorSharding, ...], tuple[TensorSharding, ...]]:
        """Returns the shardings of the operands and of the results, by dimension."""

        def shardings(
            tensors: Sequence[TensorFactorShardings], mappings: Sequence[TensorMapping]
        ) -> tuple[TensorSharding, ...]:
            return tuple(
                tensor.to_sharding(mapping, rule.factor_sizes, mesh_or_ref, mesh)
                for tensor, mapping in zip(tensors, mappings, strict=True)
            )

        return shardings(self.operands, rule.operand_mappings), shardings(self.results, rule.result_mappings)


def join_factors(factors: Iterable[FactorSharding], sizes: Iterable[int], mesh: Mesh) -> DimensionSharding:
    """Joins the shardings of factors, which have these sizes, to the sharding of a dimension."""
    axes: Axes = ()
    is_closed = False
    for sharding, size in zip(factors, sizes, strict=True):
        is_closed = is_closed or sharding.is_closed
        axes = add_axes_or_merge(axes, sharding.all_axes, mesh)
        if sharding.overflow_axes or total_size(sharding.axes, mesh) < size:
            break
    return DimensionSharding(axes, is_closed)


def cut_dimension(
    dim: DimensionSharding, mapping: DimMapping, factor_sizes: Sequence[int], mesh: Mesh
) -> list[tuple[int, FactorSharding]]:
    """Splits the axes of a dimension among its factors, major to minor."""
    if len(mapping.factor_indices) == 1:
        return [(mapping.factor_indices[0], FactorSharding(dim.axes, dim.is_closed, is_minor_most=True))]
    rest: list[AxisRef] = list(dim.axes)
    is_closed = dim.is_closed
    result: list[tuple[int, FactorSharding]] = []
    for position, factor in enumerate(mapping.factor_indices):
        if position == len(mapping.factor_indices) - 1:
            # Shards of the minor-most factor may be uneven, so it takes all remaining axes.
            result.append((factor, FactorSharding(tuple(rest), is_closed, is_minor_most=True)))
            break
        axes, left = _take_axes(rest, factor_sizes[factor], mesh)
        overflow: Axes = ()
        if left > 1 and rest:
            overflow = tuple(rest)
            rest.clear()
        result.append((factor, FactorSharding(axes, is_closed, overflow_axes=overflow)))
        # The factors that follow cannot be sharded: their axes would come after the overflow in the dimension.
        is_closed = is_closed or bool(overflow)
    return result


def _take_axes(rest: list[AxisRef], size: int, mesh: Mesh) -> tuple[Axes, int]:
    """Removes from `rest` the axes that divide a factor of this size, splitting the last. Returns the axes and the
    remaining size of the factor."""
    taken: list[AxisRef] = []
    while rest:
        axis = rest[0]
        axis_size = axis.size(mesh)
        common = gcd(size, axis_size)
        if common == 1 and axis_size > 1:
            break
        size //= common
        if common == axis_size:
            taken.append(rest.pop(0))
        else:
            head = AxisRef.sub(axis.name, axis.pre_size, common)
            taken.append(head)
            rest[0] = AxisRef.sub(axis.name, head.pre_size * common, axis_size // common)
    return tuple(taken), size
