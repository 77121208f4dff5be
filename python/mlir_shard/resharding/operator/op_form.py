# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of an op, which ops that differ only in sizes share: its shardings by factor and the candidates of axes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import prod

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.operator.common_axes import AxesPerFactor, compatible_axes, mesh_of
from mlir_shard.resharding.operator.factor_candidates import (
    Candidates,
    FactorCandidates,
    NumberedAxes,
    candidates_of_any_size,
    numbered_axes,
)
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, axes_difference, total_size
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, join_factors
from mlir_shard.sharding.rule import TensorMapping


def form_key(rule: OpShardingRule) -> Hashable:
    """Returns the part of a rule that a form depends on: factor sizes only if a dimension has several factors."""
    return (
        rule.operand_mappings,
        rule.result_mappings,
        rule.reduction_factors,
        rule.need_replication_factors,
        rule.permutation_factors,
        rule.blocked_propagation_factors,
        rule.factor_sizes if rule.has_compound_dimensions else None,
    )


@dataclass(frozen=True, slots=True)
class KeptShards:
    """The numbers of shards of an op around which nothing is resharded.

    Attributes:
        factors: a dimension that has the size of each factor, as the number of a tensor and the dimension.
        of_factors: the number of shards of each factor.
        of_tensors: the number of shards of each dimension of each tensor.
        operations_per_element: the operations for each element of the product of the factors.
    """

    factors: tuple[tuple[int, int], ...]
    of_factors: tuple[int, ...]
    of_tensors: tuple[tuple[int, ...], ...]
    operations_per_element: int


@dataclass(frozen=True)
class OpForm:
    """The properties of an op, to whose factors axes of `mesh` are assigned, that are equal for other sizes.

    Attributes:
        rule: the rule of one of the ops of the form. Its sizes matter only as `form_key` has them.
        shardings: those that operands have and results have to get, operands first; None is a replicated tensor
            without a sharding. No sharding is unreduced.
    """

    rule: OpShardingRule
    shardings: tuple[TensorSharding | None, ...]
    mesh: Mesh
    meshes: tuple[tuple[str, Mesh], ...] = ()
    _sizes: dict[Axes, int] = field(init=False, repr=False, compare=False, default_factory=dict)
    _dims: dict[tuple[int, int, AxesPerFactor], DimensionSharding] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _taken: dict[tuple[int, AxesPerFactor], TensorSharding] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _num_shards: dict[AxesPerFactor, tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _candidates: dict[tuple[int, ...], Candidates] = field(init=False, repr=False, compare=False, default_factory=dict)

    @cached_property
    def projection(self) -> ShardingProjection:
        """The shardings by factor."""
        count = len(self.rule.operand_mappings)
        operands, results = self.shardings[:count], self.shardings[count:]
        return ShardingProjection.build(operands, results, self.rule, self.mesh, closed_if_missing=True)

    @cached_property
    def own_meshes(self) -> tuple[Mesh, ...]:
        """The mesh of each tensor; the op's mesh if the tensor is replicated."""
        meshes = dict(self.meshes)
        return tuple([_own_mesh(sharding, meshes, self.mesh) for sharding in self.shardings])

    @cached_property
    def tensors_with_overflow(self) -> tuple[int, ...]:
        """The tensors that have overflow axes."""
        return self.projection.tensors_with_overflow

    @cached_property
    def factors_of(self) -> tuple[tuple[int, ...], ...]:
        """The factors that the price of each tensor depends on."""
        rule = self.rule
        own = [tuple([one for dim in of.dim_mappings for one in dim.factor_indices]) for of in rule.tensor_mappings]
        return tuple([of + rule.reduction_factors if self.is_result(at) else of for at, of in enumerate(own)])

    @cached_property
    def kept_axes(self) -> AxesPerFactor | None:
        """The axes of each factor with which nothing is resharded or reduced, for any sizes of the factors.

        None if tensors disagree, or if the answer depends on sizes or on neighbours: a dimension has several factors,
        or a factor needs permutation.
        """
        rule = self.rule
        if rule.permutation_factors or rule.has_compound_dimensions or set(self.own_meshes) != {self.mesh}:
            return None
        axes = compatible_axes(self.projection, rule)
        return None if axes is None or any(axes[factor] for factor in rule.reduction_factors) else axes

    def kept_shards(self, factor_sizes: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> KeptShards | None:
        """Returns the numbers of shards with `kept_axes`; None if they are not known to be the same for other sizes.

        The sizes are those of one op of the form; other sizes are 1 where its sizes are.
        """
        axes, rule = self.kept_axes, self.rule
        if axes is None or not rule.operand_mappings or not self.may_be_least(axes, factor_sizes, indexes=False):
            return None
        places = {
            dim.factor_indices[0]: (tensor, place)
            for tensor, mapping in enumerate(rule.tensor_mappings)
            for place, dim in enumerate(mapping.dim_mappings)
            if len(dim.factor_indices) == 1
        }
        factors = tuple([places.get(factor, (-1, -1)) for factor in range(rule.num_factors)])
        sizes = [0 if tensor < 0 else shapes[tensor][dim] for tensor, dim in factors]
        if tuple(sizes) != factor_sizes:
            return None
        return KeptShards(factors, *self.num_shards(axes), self.operations_per_element)

    @property
    def operations_per_element(self) -> int:
        """The operations for each element of the product of the factors: a product and a sum if factors are reduced."""
        return 2 if self.rule.reduction_factors else 1

    def may_be_least(self, axes_per_factor: Sequence[Axes], factor_sizes: Sequence[int], *, indexes: bool) -> bool:
        """Returns whether `ComputeCosts.cost_if_least` may prove that axes are cheapest.

        With other axes an operand that has all axes loses one, so the op waits for a reshard. An axis of a factor that
        only results have may be left out at no cost, as a result is sliced. The op then computes no less, and it waits
        for a reshard if another factor gets the axis, except for a factor that is only in operands and not reduced. A
        factor of size 1 gets no axes.
        """
        rule = self.rule
        in_operands = _factors_in(rule.operand_mappings)
        outside = {factor for factor, axes in enumerate(axes_per_factor) if axes} - in_operands
        if not outside:
            return True
        if indexes or not outside.isdisjoint(rule.permutation_factors):
            return False
        left = {one for one in in_operands.difference(rule.reduction_factors) if factor_sizes[one] != 1}
        return all(left <= _factors_in((mapping,)) for mapping in rule.result_mappings)

    @cached_property
    def operand_shards(self) -> tuple[tuple[int, int, int], ...]:
        """The sharded dimensions of operands: the number of the operand, the dimension, and its number of shards."""
        count = len(self.rule.operand_mappings)
        operands = ((index, one.dim_shardings) for index, one in enumerate(self.shardings[:count]) if one is not None)
        return tuple(
            [(at, dim, self.size(one.axes)) for at, dims in operands for dim, one in enumerate(dims) if one.axes]
        )

    def is_result(self, index: int) -> bool:
        """Returns whether a tensor is a result."""
        return index >= len(self.rule.operand_mappings)

    def is_on_mesh(self, index: int) -> bool:
        """Returns whether a tensor does not change its mesh."""
        return self.own_meshes[index] == self.mesh

    def size(self, axes: Axes) -> int:
        """Returns the number of devices along axes."""
        found = self._sizes.get(axes)
        if found is None:
            found = self._sizes[axes] = total_size(axes, self.mesh)
        return found

    def num_shards(self, axes_per_factor: AxesPerFactor) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Returns the numbers of shards of each factor with these axes, and of each dimension of each tensor."""
        found = self._num_shards.get(axes_per_factor)
        if found is None:
            counts = tuple(map(self.size, axes_per_factor))
            tensors = [
                tuple([prod([counts[factor] for factor in dim.factor_indices]) for dim in mapping.dim_mappings])
                for mapping in self.rule.tensor_mappings
            ]
            found = self._num_shards[axes_per_factor] = counts, tuple(tensors)
        return found

    def is_reduced(self, axes_per_factor: Sequence[Axes]) -> bool:
        """Returns whether a reduction factor is sharded."""
        return any(axes_per_factor[factor] for factor in self.rule.reduction_factors)

    def stays(self, index: int, axes_per_factor: Sequence[Axes]) -> bool:
        """Returns whether a tensor is neither resharded nor reduced."""
        if not self.is_on_mesh(index) or (self.is_result(index) and self.is_reduced(axes_per_factor)):
            return False
        if index in self.tensors_with_overflow:
            return False
        # Without overflow axes, the axes of the factors determine a sharding.
        factors = self.projection.tensors[index].factors
        return all(one is None or one.axes == axes for one, axes in zip(factors, axes_per_factor, strict=True))

    def taken(self, index: int, axes_per_factor: Sequence[Axes]) -> TensorSharding:
        """Returns the sharding in which the op takes an operand or leaves a result."""
        key = index, tuple([axes_per_factor[factor] for factor in self.factors_of[index]])
        found = self._taken.get(key)
        if found is None:
            found = self._taken[key] = self._computed_taken(index, axes_per_factor)
        return found

    def _computed_taken(self, index: int, axes_per_factor: Sequence[Axes]) -> TensorSharding:
        tensor = self.projection.tensors[index]
        dims = tuple(
            [
                self.taken_dim(index, dim, tuple([axes_per_factor[factor] for factor in mapping.factor_indices]))
                for dim, mapping in enumerate(self.rule.tensor_mappings[index].dim_mappings)
            ]
        )
        replicated = tensor.replicated_axes
        if replicated:
            # The op may be sharded along axes that the user keeps free in this tensor alone.
            replicated = axes_difference(replicated, [axis for dim in dims for axis in dim.axes], self.mesh)
        return TensorSharding(self.mesh, dims, replicated, tensor.unreduced_axes, tensor.reduction_op)

    def taken_dim(self, index: int, dim: int, axes: AxesPerFactor) -> DimensionSharding:
        """Returns the sharding of a dimension of a tensor with these axes along the factors of the dimension."""
        key = index, dim, axes
        found = self._dims.get(key)
        if found is None:
            found = self._dims[key] = self._computed_dim(*key)
        return found

    def _computed_dim(self, index: int, dim: int, axes: AxesPerFactor) -> DimensionSharding:
        rule = self.rule
        factors = rule.tensor_mappings[index].dim_mappings[dim].factor_indices
        before = [self.projection.tensors[index].factors[factor] for factor in factors]
        is_closed = [old is not None and old.is_closed for old in before]
        if len(factors) == 1:
            return DimensionSharding(axes[0], is_closed[0])
        sizes = [rule.factor_sizes[factor] for factor in factors]
        return join_factors(map(FactorSharding, axes, is_closed), sizes, self.mesh)

    @cached_property
    def grid(self) -> Grid:
        """The grid whose axes the shardings are made of. Raises ValueError if no grid has them."""
        lists = (
            factor.all_axes for tensor in self.projection.tensors for factor in tensor.factors if factor is not None
        )
        return Grid.of(self.mesh, (axis for axes in lists for axis in axes))

    @cached_property
    def used_axes(self) -> GridAxes:
        """The grid axes in use, sorted. Raises ValueError if no grid has them."""
        every = (*chain.from_iterable(self._factor_axes), *chain.from_iterable(self._given_axes))
        return tuple(sorted(set(chain.from_iterable(every))))

    @cached_property
    def _factor_axes(self) -> list[list[GridAxes]]:
        """The axes that the tensors with each factor have along it."""
        tensors, grid = self.projection.tensors, self.grid
        return [
            [grid.axes(one.axes) for tensor in tensors if (one := tensor.factors[factor]) is not None]
            for factor in range(self.rule.num_factors)
        ]

    @cached_property
    def _given_axes(self) -> list[list[GridAxes]]:
        return [
            [self.grid.axes(dim.axes) for dim in own.dim_shardings]
            if own is not None and self.is_on_mesh(index)
            else [()] * mapping.rank
            for index, (own, mapping) in enumerate(zip(self.shardings, self.rule.tensor_mappings, strict=True))
        ]

    @cached_property
    def given_axes(self) -> list[list[NumberedAxes]]:
        """The axes of each dimension of each tensor before an operand is resharded, or after a result is.

        They are empty for a tensor that changes its mesh. Raises ValueError as `used_axes` does.
        """
        return [[numbered_axes(axes, self.grid, self.used_axes) for axes in dims] for dims in self._given_axes]

    @cached_property
    def search_axes(self) -> tuple[GridAxes, ...]:
        """The axes on the finest grid that each axis in use consists of."""
        finest = self.grid.finest()
        return tuple([finest.axes((self.grid.atoms[axis],)) for axis in self.used_axes])

    def candidates(self, factor_sizes: Sequence[int]) -> Candidates:
        """Returns the candidates of factors of these sizes, first those that more tensors with the factor begin with.

        They are the prefixes of the lists of its tensors, cut anywhere between grid axes, and each prefix followed by
        axes in use elsewhere, within the limits above, if they divide the factor evenly. A factor that needs
        replication has only the empty list. No axes move to a permutation factor, or to one that blocks propagation.
        Raises ValueError if no grid has the axes in use, or if these are more than `MOST_USED` axes and sub-axes.
        """
        of_any_size = self._candidates_of_any_size
        divisors = tuple([of.divisor(size) for of, size in zip(of_any_size, factor_sizes, strict=True)])
        found = self._candidates.get(divisors)
        if found is None:
            listed = [of.of(divisor) for of, divisor in zip(of_any_size, divisors, strict=True)]
            axes, numbered, grid_axes = zip(*listed, strict=True) if listed else ((), (), ())
            devices = self.grid.num_devices(tuple(frozenset().union(*grid_axes)))
            found = self._candidates[divisors] = Candidates(axes, numbered, devices)
        return found

    @cached_property
    def _candidates_of_any_size(self) -> tuple[FactorCandidates, ...]:
        return candidates_of_any_size(self._factor_axes, self.rule, self.grid, self.used_axes)


def _factors_in(mappings: Iterable[TensorMapping]) -> set[int]:
    return {factor for mapping in mappings for dim in mapping.dim_mappings for factor in dim.factor_indices}


def _own_mesh(sharding: TensorSharding | None, meshes: Mapping[str, Mesh], mesh: Mesh) -> Mesh:
    """Returns the mesh of a tensor; the op's mesh if the tensor is replicated."""
    if sharding is None or sharding.is_fully_replicated:
        return mesh
    return mesh_of(sharding, meshes) or mesh
