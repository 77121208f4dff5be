# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The basic strategy of propagation: along each factor, the axes on which all tensors of an op agree.

The strategy, and each decision in it, is that of Shardy's basic factor propagation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.axis_lists import Axes, prefix_without_overlap
from mlir_shard.sharding.edges import PropagationDirection
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import OpShardingRule

# The way in which shardings may go along each factor of a rule.
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
    """The projection with each factor's compatible axes in every tensor that can take them.

    A conservative propagation leaves out sub-axes. That the op is elementwise makes no difference here.
    """
    for factor, direction in enumerate(allowed_directions(rule, directions)):
        axes = compatible_axes(projection, rule, factor, mesh, direction, conservative=conservative)
        projection = projection.expand(factor, axes)
    return projection


def allowed_directions(rule: OpShardingRule, directions: Directions) -> tuple[PropagationDirection, ...]:
    """The directions, none along blocked factors."""
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
    """The longest list of axes along `factor` that contradicts nothing in any tensor of the projection."""
    size = rule.factor_sizes[factor]

    def fitting(axis: AxisRef, sharded_size: int) -> AxisRef | None:
        return _fitting_prefix(axis, projection, factor, sharded_size, size, mesh)

    return truncate(compatible_major_axes(projection, factor, direction), fitting, mesh, conservative=conservative)


def truncate(
    axes: Axes, fitting: Callable[[AxisRef, int], AxisRef | None], mesh: Mesh, *, conservative: bool = False
) -> Axes:
    """The axes up to the first that does not fit, and of that one the prefix that does.

    `fitting` gives the prefix of an axis that may follow axes of a total size. A conservative propagation takes no
    sub-axis.
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
    """The axes on which the tensors agree along `factor`, as long as any has more, other factors left aside.

    Going one way, only the tensors it begins from can make the list longer; the others can make it shorter.
    """
    if direction is PropagationDirection.NONE:
        return ()
    first, second = projection.operands, projection.results
    if direction is PropagationDirection.BACKWARD:
        first, second = second, first
    axes: Axes = ()
    can_expand = True
    for sharding in _along(first, factor):
        axes, can_expand = _agree(axes, sharding.axes, can_expand)
    if direction is not PropagationDirection.BOTH:
        can_expand = False
    for sharding in _along(second, factor):
        axes, can_expand = _agree(axes, sharding.axes, can_expand)
    return axes


def _along(tensors: Sequence[TensorFactorShardings], factor: int) -> Iterator[FactorSharding]:
    return (sharding for tensor in tensors if (sharding := tensor.factors[factor]) is not None)


def _agree(old: Axes, new: Axes, can_expand: bool) -> tuple[Axes, bool]:
    """What two lists begin with alike, with the rest of the longer one, and whether that may still grow.

    The rest of `new` counts only if `can_expand`. Where one axis is a prefix of its counterpart and its list goes on
    with another, the lists part there: consecutive sub-axes would have been merged.
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
    """The largest prefix of `axis` that may come next along `factor` in every tensor."""
    for tensor in projection.tensors:
        fitting = prefix_beside_other_factors(axis, tensor, factor)
        if fitting is not None:
            fitting = prefix_within_factor(fitting, tensor, factor, sharded_size, factor_size, mesh)
        if fitting is None:
            return None
        axis = fitting
    return axis


def prefix_beside_other_factors(axis: AxisRef, tensor: TensorFactorShardings, factor: int) -> AxisRef | None:
    """The largest prefix of `axis` that shards no other factor of the tensor."""
    fitting: AxisRef | None = axis
    for other, sharding in enumerate(tensor.factors):
        if fitting is not None and sharding is not None and other != factor:
            fitting = prefix_without_overlap(fitting, sharding.all_axes)
    return fitting


def prefix_within_factor(
    axis: AxisRef, tensor: TensorFactorShardings, factor: int, sharded_size: int, factor_size: int, mesh: Mesh
) -> AxisRef | None:
    """The largest prefix of `axis` that a tensor has, or can take after axes of `sharded_size`, along its factor.

    All of it where the tensor does not have the factor. A factor that is not the minor-most of its dimension takes only
    what divides it, or the next one would be strided.
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
