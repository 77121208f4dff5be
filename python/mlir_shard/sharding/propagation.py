# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The strategies of propagation along the factors of an op.

The basic strategy adds to a tensor the axes that are compatible with all tensors of the op. The aggressive strategy
resolves conflicts, and adds to each tensor, along each factor, all axes that it can take.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from mlir_shard.sharding.axes import Axes, AxisRef, is_strict_prefix, prefix_without_overlap, total_size
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.projection import ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.propagation_edges import PropagationDirection
from mlir_shard.sharding.rule import OpShardingRule
from mlir_shard.sharding.tensor import TensorSharding

# The direction in which shardings may be propagated along each factor of a rule.
Directions = Sequence[PropagationDirection]


def propagate_basic(
    projection: ShardingProjection,
    rule: OpShardingRule,
    mesh: Mesh,
    directions: Directions,
    *,
    conservative: bool = False,
    elementwise: bool = False,
) -> ShardingProjection:
    """Adds the compatible axes of each factor to every tensor of the projection that can take them.

    A conservative propagation omits sub-axes. `elementwise` has no effect in this strategy.
    """
    for factor, direction in enumerate(allowed_directions(rule, directions)):
        axes = compatible_axes(projection, rule, factor, mesh, direction, conservative=conservative)
        projection = projection.expand(factor, axes)
    return projection


def agree(shardings: Iterable[TensorSharding | None], rule: OpShardingRule) -> bool:
    """Returns whether all tensors have the same axes along each factor, so that no strategy changes them.

    Returns False if a dimension has several factors. The shardings must have the ranks of the rule.
    """
    axes_of: dict[int, Axes] = {}
    for sharding, mapping in zip(shardings, rule.tensor_mappings, strict=True):
        for dim, of in enumerate(mapping.dim_mappings):
            if len(of.factor_indices) != 1:
                return False
            axes = () if sharding is None else sharding.dim_shardings[dim].axes
            if axes_of.setdefault(of.factor_indices[0], axes) != axes:
                return False
    return True


def allowed_directions(rule: OpShardingRule, directions: Directions) -> tuple[PropagationDirection, ...]:
    """Returns the directions, with NONE for blocked factors."""
    if not rule.blocked_propagation_factors:
        return tuple(directions)
    return tuple(
        PropagationDirection.NONE if rule.is_blocked(factor) else direction
        for factor, direction in enumerate(directions)
    )


def compatible_axes(
    projection: ShardingProjection,
    rule: OpShardingRule,
    factor: int,
    mesh: Mesh,
    direction: PropagationDirection,
    *,
    conservative: bool = False,
) -> Axes:
    """Returns the longest list of axes along `factor` that is compatible with every tensor of the projection."""
    size = rule.factor_sizes[factor]

    def fitting(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return _fitting_prefix(axis, projection, factor, sharded_size, size, mesh)

    return truncate(compatible_major_axes(projection, factor, direction), fitting, mesh, conservative=conservative)


def order_of(sizes: Iterable[int]) -> tuple[int, ...]:
    """Returns for each size the number of distinct smaller sizes."""
    sizes = tuple(sizes)
    places = {size: place for place, size in enumerate(sorted(set(sizes)))}
    return tuple([places[size] for size in sizes])


def propagation_key(rule: OpShardingRule) -> Hashable:
    """Returns the part of a rule that decides how shardings propagate: rules with equal keys propagate in the same way.

    A dimension of one factor can be sharded along any axes. So the sizes of factors matter in dimensions of several
    factors, and otherwise only the order of the tensors by size.
    """
    sizes = rule.factor_sizes
    volumes: list[int] = []
    cut: set[int] = set()
    for mapping in rule.tensor_mappings:
        factors: set[int] = set()
        for dim in mapping.dim_mappings:
            factors.update(dim.factor_indices)
            if len(dim.factor_indices) > 1:
                cut.update(dim.factor_indices)
        volumes.append(prod([sizes[factor] for factor in factors]))
    return (
        rule.operand_mappings,
        rule.result_mappings,
        order_of(volumes),
        tuple([size if factor in cut else 0 for factor, size in enumerate(sizes)]),
        rule.reduction_factors,
        rule.need_replication_factors,
        rule.permutation_factors,
        rule.blocked_propagation_factors,
    )


def truncate(
    axes: Axes, fitting: Callable[[AxisRef, int], AxisRef | None], mesh: Mesh, *, conservative: bool = False
) -> Axes:
    """Returns the axes before the first that does not fit, and the prefix of that axis that fits.

    `fitting` returns the prefix of an axis that may follow axes of a total size. A conservative propagation omits
    sub-axes.
    """
    result: list[AxisRef] = []
    sharded_size = 1
    for axis in axes:
        kept = fitting(axis, sharded_size)
        if kept is None or (conservative and kept.sub_axis_info is not None):
            break
        result.append(kept)
        if kept != axis:
            break
        sharded_size *= kept.size(mesh)
    return tuple(result)


def compatible_major_axes(projection: ShardingProjection, factor: int, direction: PropagationDirection) -> Axes:
    """Returns the longest list of axes along `factor` that is compatible with all tensors, ignoring other factors.

    In a single direction, only its source tensors can make the list longer; the other tensors can make it shorter.
    """
    if direction is PropagationDirection.NONE:
        return ()
    first, second = projection.operands, projection.results
    if direction is PropagationDirection.BACKWARD:
        first, second = second, first
    axes, can_expand = _agree_in((), first, factor, True)
    return _agree_in(axes, second, factor, can_expand and direction is PropagationDirection.BOTH)[0]


def _agree_in(axes: Axes, tensors: Sequence[TensorFactorShardings], factor: int, can_expand: bool) -> tuple[Axes, bool]:
    for tensor in tensors:
        sharding = tensor.factors[factor]
        if sharding is not None and sharding.axes != axes:
            axes, can_expand = _agree(axes, sharding.axes, can_expand)
    return axes, can_expand


def _agree(old: Axes, new: Axes, can_expand: bool) -> tuple[Axes, bool]:
    """Returns the common prefix of two lists, with the rest of the longer one, and whether the list may still grow.

    The rest of `new` counts only if `can_expand`. If one axis is a strict prefix of its counterpart and its list
    continues with another axis, the lists differ from there on: consecutive sub-axes would have been merged.
    """
    if not old or not new or old == new:
        return old or (new if can_expand else ()), can_expand
    result: list[AxisRef] = []
    for index, (mine, theirs) in enumerate(zip(old, new, strict=False)):
        old_ends, new_ends = index == len(old) - 1, index == len(new) - 1
        if mine == theirs:
            result.append(mine)
        elif theirs.is_prefix_of(mine):
            if not new_ends:
                return (*result, theirs), False
            result.append(mine)
        elif mine.is_prefix_of(theirs):
            if not can_expand or not old_ends:
                return (*result, mine), False
            result.append(theirs)
        else:
            return tuple(result), False
    both = min(len(old), len(new))
    rest = old[both:] or (new[both:] if can_expand else ())
    return (*result, *rest), can_expand


def _fitting_prefix(
    axis: AxisRef, projection: ShardingProjection, factor: int, sharded_size: int, factor_size: int, mesh: Mesh
) -> AxisRef | None:
    """Returns the largest prefix of `axis` that may follow along `factor` in every tensor."""
    for tensor in projection.tensors:
        fitting = prefix_beside_other_factors(axis, tensor, factor)
        if fitting is not None:
            fitting = prefix_within_factor(fitting, tensor, factor, sharded_size, factor_size, mesh)
        if fitting is None:
            return None
        axis = fitting
    return axis


def prefix_beside_other_factors(axis: AxisRef, tensor: TensorFactorShardings, factor: int) -> AxisRef | None:
    """Returns the largest prefix of `axis` that does not shard another factor of the tensor."""
    fitting: AxisRef | None = axis
    for other, sharding in enumerate(tensor.factors):
        if fitting is None or sharding is None or other == factor:
            continue
        if sharding.axes or sharding.overflow_axes:
            fitting = prefix_without_overlap(fitting, sharding.all_axes)
    return fitting


def prefix_within_factor(
    axis: AxisRef, tensor: TensorFactorShardings, factor: int, sharded_size: int, factor_size: int, mesh: Mesh
) -> AxisRef | None:
    """Returns the largest prefix of `axis` that a tensor has along its factor, or can take after `sharded_size`.

    `sharded_size` is the size of the preceding axes. Returns `axis` if the tensor does not have the factor. A factor
    that is not the minor-most of its dimension takes only axes that divide it: the next factor would be strided.
    """
    sharding = tensor.factors[factor]
    if sharding is None:
        return axis
    fitting = prefix_without_overlap(axis, tensor.replicated_axes + tensor.unreduced_axes)
    if fitting is None or any(own.contains(fitting) for own in sharding.axes):
        return fitting
    if not sharding.is_closed and not sharding.overflow_axes:
        if sharding.is_minor_most:
            return fitting
        if factor_size % sharded_size == 0:
            size = fitting.size(mesh)
            common = gcd(factor_size // sharded_size, size)
            if common == size:
                return fitting
            if common != 1:
                return AxisRef.sub(fitting.name, fitting.pre_size, common)
    if sharding.axes and sharding.axes[-1].is_prefix_of(fitting):
        return sharding.axes[-1]
    return None


def propagate_aggressive(
    projection: ShardingProjection,
    rule: OpShardingRule,
    mesh: Mesh,
    directions: Directions,
    *,
    conservative: bool = False,
    elementwise: bool = False,
) -> ShardingProjection:
    """Adds the axes of each factor to every tensor of the projection, as far as the tensor can take them.

    A conservative propagation omits sub-axes. In an elementwise op, of two factors with sources of the same size the
    more sharded one has precedence, and an operand takes from another operand only axes that the results have.
    """
    axes_per_factor = tuple(
        compatible_major_axes(projection, factor, direction)
        for factor, direction in enumerate(allowed_directions(rule, directions))
    )
    if not _may_expand(projection, axes_per_factor):
        return projection
    step = _Step(axes_per_factor, rule.factor_sizes, mesh, conservative)
    order = step.order(projection, elementwise)
    results = tuple([step.expanded(tensor, order, ()) for tensor in projection.results])
    limits = results if elementwise else ()
    operands = tuple([step.expanded(tensor, order, limits) for tensor in projection.operands])
    return projection.replaced(operands, results)


def _may_expand(projection: ShardingProjection, axes_per_factor: Sequence[Axes]) -> bool:
    """Returns whether the axes of some tensor along a factor are a strict prefix of the axes of the factor."""
    return any(
        axes and sharding is not None and is_strict_prefix(sharding.axes, axes)
        for tensor in projection.tensors
        for sharding, axes in zip(tensor.factors, axes_per_factor, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Step:
    """The axes to propagate along each factor, and the sizes of the factors and the mesh."""

    axes_per_factor: tuple[Axes, ...]
    factor_sizes: tuple[int, ...]
    mesh: Mesh
    conservative: bool

    def order(self, projection: ShardingProjection, elementwise: bool) -> list[int]:
        """Returns the factors that have axes, by precedence in conflicts."""
        factors = [factor for factor, axes in enumerate(self.axes_per_factor) if axes]
        names = [axis.name for factor in factors for axis in self.axes_per_factor[factor]]
        if len(set(names)) == len(names):
            # The axes of different factors do not overlap.
            return factors
        sources = self._largest_sources(projection)

        def key(factor: int) -> tuple[int, int, int, int]:
            size, index = sources[factor]
            sharded = total_size(self.axes_per_factor[factor], self.mesh) if elementwise else 0
            return -size, -sharded, index, factor

        return sorted(factors, key=key)

    def _largest_sources(self, projection: ShardingProjection) -> list[tuple[int, int]]:
        """Returns for each factor the size and the index of the largest tensor that has all its axes; -1 if none."""
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
        """Adds to the tensor the axes that it can take along each factor, at most those of each of `limits`."""
        for factor in order:
            old = tensor.factors[factor]
            if old is None or not is_strict_prefix(old.axes, self.axes_per_factor[factor]):
                continue
            axes = self._fitting(tensor, factor)
            for limit in limits:
                sharding = limit.factors[factor]
                if sharding is not None and is_strict_prefix(sharding.axes, axes):
                    axes = sharding.axes
            tensor = tensor.expand(factor, axes)
        return tensor

    def _fitting(self, tensor: TensorFactorShardings, factor: int) -> Axes:
        """Returns the axes that the tensor can take along the factor."""

        def fitting(axis: AxisRef, sharded_size: int) -> AxisRef | None:
            size = self.factor_sizes[factor]
            within = prefix_within_factor(axis, tensor, factor, sharded_size, size, self.mesh)
            return None if within is None else prefix_beside_other_factors(within, tensor, factor)

        return truncate(self.axes_per_factor[factor], fitting, self.mesh, conservative=self.conservative)


def _factors(tensor: TensorFactorShardings) -> Iterator[tuple[int, Axes]]:
    return ((factor, sharding.axes) for factor, sharding in enumerate(tensor.factors) if sharding is not None)
