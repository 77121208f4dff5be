# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes: axes that fit the borders of factors, and groups of dimensions that are reshaped independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axis_or_merge
from mlir_shard.sharding.layout import block_size
from mlir_shard.sharding.projection import FactorSharding, ShardingProjection, TensorFactorShardings
from mlir_shard.sharding.rule import TensorMapping


def axes_of_reshape(projection: ShardingProjection, rule: OpShardingRule, mesh: Mesh) -> tuple[Axes, ...]:
    """Returns the axes of each factor for an op with one operand and one result, if an axis overflows its factor."""
    operand, result = projection.operands[0], projection.results[0]
    larger = operand if operand.sharding_size(mesh) >= result.sharding_size(mesh) else result
    axes = tuple(axis for factor in larger.factors if factor is not None for axis in factor.all_axes)
    sides = ((operand, rule.operand_mappings[0]), (result, rule.result_mappings[0]))
    legal = [
        _redistributed(tensor, mapping, rule.factor_sizes, axes, mesh).to_sharding(mapping, rule.factor_sizes, "", mesh)
        for tensor, mapping in sides
    ]
    return ShardingProjection.build(legal[:1], legal[1:], rule, mesh).common_prefix_axes()


def _redistributed(
    tensor: TensorFactorShardings, mapping: TensorMapping, sizes: Sequence[int], axes: Axes, mesh: Mesh
) -> TensorFactorShardings:
    order = [factor for dim in mapping.dim_mappings for factor in dim.factor_indices]
    given, overflow = _give_out(axes, [sizes[factor] for factor in order], mesh)
    factors = list(tensor.factors)
    for position, factor in enumerate(order):
        old = factors[factor] or FactorSharding()
        left = overflow if position == len(order) - 1 else ()
        factors[factor] = old._replace(axes=given[position], overflow_axes=left)
    return tensor._replace(factors=tuple(factors))


def _give_out(axes: Axes, sizes: Sequence[int], mesh: Mesh) -> tuple[list[Axes], Axes]:
    """Returns the axes that slots of these sizes get, in order, and the axes from the first that fits in no slot."""
    room = list(sizes)
    given: list[Axes] = [()] * len(room)
    rest = list(axes)
    while rest:
        # All slots are tried in order for the rest of one axis, again as long as a slot takes a part of it.
        was_taken = False
        left: AxisRef | None = rest[0]
        for slot, size in enumerate(room):
            if left is None:
                break
            part = _part(left, size, mesh)
            if part is None:
                continue
            was_taken = True
            given[slot] = add_axis_or_merge(given[slot], part, mesh)
            room[slot] //= part.size(mesh)
            left = left.suffix_without_overlap(part, mesh)
        if not was_taken:
            return given, tuple(rest)
        rest[:1] = [] if left is None else [left]
    return given, ()


def _part(axis: AxisRef, room: int, mesh: Mesh) -> AxisRef | None:
    """Returns the major part of an axis that divides the rest of a slot; None if no part does."""
    size = axis.size(mesh)
    common = gcd(room, size)
    if room <= 1 or (common == 1 and size != 1):
        return None
    return axis if common == size else AxisRef.sub(axis.name, axis.pre_size, common)


Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class ReshapeGroup:
    """A smallest group of dimensions of the operand and of the result that hold the same elements."""

    operand_dims: range
    result_dims: range
    operand_sizes: tuple[int, ...]
    result_sizes: tuple[int, ...]

    @property
    def is_pass_through(self) -> bool:
        """Whether only dimensions of size 1 change."""
        return max(map(_num_proper, (self.operand_sizes, self.result_sizes))) <= 1

    @property
    def is_proper_split(self) -> bool:
        """Whether one dimension is split into several, and no dimension has size 1."""
        is_split = len(self.operand_sizes) == 1 and len(self.result_sizes) > 1
        return is_split and 1 not in (*self.operand_sizes, *self.result_sizes)


def reshape_groups(operand_shape: Shape, result_shape: Shape) -> tuple[ReshapeGroup, ...]:
    """Returns the groups of a reshape, from major to minor. Dimensions of size 1 at the end are separate groups."""
    groups = []
    taken = [0, 0]
    shapes = (operand_shape, result_shape)
    while any(begin < len(shape) for begin, shape in zip(taken, shapes, strict=True)):
        begin = list(taken)
        products = [1, 1]
        sides = [side for side in (0, 1) if taken[side] < len(shapes[side])]
        while sides:
            for side in sides:
                products[side] *= shapes[side][taken[side]]
                taken[side] += 1
            smaller = 0 if products[0] < products[1] else 1
            sides = [smaller] if products[0] != products[1] and taken[smaller] < len(shapes[smaller]) else []
        dims = [range(*pair) for pair in zip(begin, taken, strict=True)]
        sizes = [tuple(shape[dim] for dim in of) for shape, of in zip(shapes, dims, strict=True)]
        groups.append(ReshapeGroup(dims[0], dims[1], sizes[0], sizes[1]))
    return tuple(groups)


def holds_equal_blocks(
    before: TensorSharding, shape: Shape, after: TensorSharding, new_shape: Shape, mesh: Mesh
) -> bool:
    """Returns whether the shards of a tensor in one shape are, element by element, those in the other."""
    return _strides(before, shape, mesh) == _strides(after, new_shape, mesh)


def has_same_shards(before: TensorSharding, shape: Shape, after: TensorSharding, new_shape: Shape, mesh: Mesh) -> bool:
    """Returns whether both shardings cut the elements into equally many parts along each axis, at any places."""
    return _prefixes(before, shape, mesh) == _prefixes(after, new_shape, mesh)


@dataclass(frozen=True, slots=True)
class _Cut:
    """An axis, with the distance between its shards or the number of parts before it cuts them."""

    axis: AxisRef
    where: int


def _strides(sharding: TensorSharding, shape: Shape, mesh: Mesh) -> list[_Cut]:
    """Returns the elements between the shards of each axis, from major to minor; sub-axes that continue are merged."""
    cuts: list[_Cut] = []
    for dim, of in reversed(list(enumerate(sharding.dim_shardings))):
        stride = prod(shape[dim + 1 :]) * block_size(shape[dim], of.sharded_size(mesh))
        for axis in reversed(of.axes):
            cuts.append(_Cut(axis, stride))
            stride *= axis.size(mesh)
    merged: list[_Cut] = []
    for cut in sorted(cuts, key=lambda cut: -cut.where):
        major = merged[-1] if merged else None
        if major and major.axis.can_merge(cut.axis) and major.where == cut.where * cut.axis.size(mesh):
            merged[-1] = _Cut(major.axis.merge(cut.axis, mesh), cut.where)
        else:
            merged.append(cut)
    return merged


def _prefixes(sharding: TensorSharding, shape: Shape, mesh: Mesh) -> list[_Cut]:
    """Returns the number of parts of the elements before each axis cuts them; sub-axes that continue are merged."""
    merged: list[_Cut] = []
    is_whole = False
    for dim, of in enumerate(sharding.dim_shardings):
        parts = prod(shape[:dim])
        for index, axis in enumerate(of.axes):
            major = merged[-1] if merged else None
            if major and (index or is_whole) and major.axis.can_merge(axis):
                merged[-1] = _Cut(major.axis.merge(axis, mesh), major.where)
            else:
                merged.append(_Cut(axis, parts))
            parts *= axis.size(mesh)
        # The next dimension continues this one if this one cannot be cut further.
        is_whole = of.sharded_size(mesh) == shape[dim] or (is_whole and shape[dim] == 1)
    return merged


def _num_proper(sizes: Sequence[int]) -> int:
    return sum(size != 1 for size in sizes)
