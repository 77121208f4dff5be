# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes whose shards have different elements before and after, because shards are uneven."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.operator.reshape import ReshapeGroup, has_same_shards, holds_equal_blocks, reshape_groups
from mlir_shard.resharding.windows import halo_of_split
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, axes_difference
from mlir_shard.sharding.layout import even_shape
from mlir_shard.transforms.halo.halo_exchange import Exchange, ManualPart
from mlir_shard.transforms.halo.moving_ops import Surroundings, is_static
from mlir_shard.transforms.shardings import sharding_and_mesh


class ShardedReshape:
    """A reshape of a sharded tensor, with the groups of dimensions that have uneven shards."""

    def __init__(self, op: Any, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> None:
        self._op = op
        self._before = before
        self._after = after
        self._mesh = mesh
        self._shape, self._new_shape = (list(value.type.shape) for value in (op.operands[0], op.results[0]))
        groups = reshape_groups(self._shape, self._new_shape)
        self._uneven = [group for group in groups if not group.is_pass_through and self._is_uneven(group)]
        self._axes: Axes = ()
        for group in self._uneven:
            self._axes += self._axes_of(before, group.operand_dims) + self._axes_of(after, group.result_dims)

    def is_local(self) -> bool:
        """Returns whether the shard of every device has the same elements before and after the reshape."""
        sides = (self._before, self._shape, self._after, self._new_shape, self._mesh)
        return not self._uneven or holds_equal_blocks(*sides)

    def exchange(self, around: Surroundings) -> bool:
        """Replaces the reshape by an exchange with neighbours and a reshape of each shard.

        Returns False, without a change, if this is not possible: if anything but one dimension is split, or elements
        move further than to a neighbour.
        """
        if not has_same_shards(self._before, self._shape, self._after, self._new_shape, self._mesh):
            return False
        even = even_shape(self._shape, self._before, self._mesh)
        new_even = even_shape(self._new_shape, self._after, self._mesh)
        if not all(self._can_exchange(group, even, new_even) for group in self._uneven):
            return False
        exchanges = [self._exchange(group, even) for group in self._uneven]
        if any(max(one.halo.left_hops, one.halo.right_hops) > 1 for one in exchanges):
            return False
        part = around.part(self._mesh, self._axes)
        if not (part.takes(even, self._before) and part.takes(new_even, self._after)):
            return False
        if not stablehlo.has_zero(self._op.results[0].type.element_type):
            return False
        with ir.InsertionPoint(self._op), self._op.location:
            value = self._exchanged(exchanges, even, new_even, part)
        self._replace(value)
        return True

    def replicate(self) -> None:
        """Replaces the reshape by one in which the dimensions of uneven groups are not sharded, between reshards."""
        op = self._op
        with ir.InsertionPoint(op), op.location:
            whole = sdy.ReshardOp(op.operands[0], self._without_uneven(self._before)).operation.results[0]
            type_ = op.results[0].type
            value = stablehlo.build("reshape", type_, whole, sharding=self._without_uneven(self._after))
            value = sdy.ReshardOp(value, self._after).operation.results[0]
        self._replace(value)

    def _replace(self, value: Any) -> None:
        self._op.results[0].replace_all_uses_with(value)
        self._op.erase()

    def _without_uneven(self, sharding: TensorSharding) -> TensorSharding:
        dims = {
            dim: type(of)(axes_difference(of.axes, self._axes, self._mesh), of.is_closed, of.priority)
            for dim, of in enumerate(sharding.dim_shardings)
        }
        return sharding.replace_dims(dims)

    def _axes_of(self, sharding: TensorSharding, dims: range) -> Axes:
        return tuple(axis for dim in dims for axis in sharding.dim_shardings[dim].axes)

    def _is_uneven(self, group: ReshapeGroup) -> bool:
        sides = (
            (self._before, group.operand_dims, group.operand_sizes),
            (self._after, group.result_dims, group.result_sizes),
        )
        return any(
            size % sharding.dim_shardings[dim].sharded_size(self._mesh)
            for sharding, dims, sizes in sides
            for dim, size in zip(dims, sizes, strict=True)
        )

    def _can_exchange(self, group: ReshapeGroup, even: list[int], new_even: list[int]) -> bool:
        if not group.is_proper_split or group.operand_sizes[0] % group.result_sizes[0]:
            return False
        return prod(new_even[dim] for dim in group.result_dims) == even[group.operand_dims[0]]

    def _exchange(self, group: ReshapeGroup, even: list[int]) -> Exchange:
        (dim,) = group.operand_dims
        shards = [self._after.dim_shardings[one].sharded_size(self._mesh) for one in group.result_dims]
        halo = halo_of_split(self._shape[dim], even[dim], group.result_sizes, shards)
        return Exchange(dim, self._axes_of(self._after, group.result_dims), halo, is_affine=False)

    def _exchanged(self, exchanges: list[Exchange], even: list[int], new_even: list[int], part: ManualPart) -> Any:
        operand = self._op.operands[0]
        padding = stablehlo.scalar(0, operand.type.element_type)
        value = operand
        if even != self._shape:
            value = stablehlo.pad_behind(operand, padding, even, self._before)
        names = part.manual_axes

        def body(arguments: Sequence[Any]) -> Any:
            local, filling = arguments
            for one in exchanges:
                if one.halo.needs_communication:
                    inside = self._before.without_axes(names)
                    local = part.exchange(local, filling, one, inside, is_zero=True)
            type_ = stablehlo.with_shape(operand.type, part.local_shape(new_even, self._after))
            return stablehlo.build("reshape", type_, local, sharding=self._after.without_axes(names))

        scalar = TensorSharding.fully_open(0, self._before.mesh_or_ref)
        type_ = stablehlo.with_shape(operand.type, new_even)
        result = part.build([(value, self._before), (padding, scalar)], type_, self._after, body)
        return stablehlo.first(result, self._new_shape, self._after)


def resolve_reshape(op: Any, around: Surroundings, *, by_exchange: bool) -> None:
    """Makes a reshape local if its operand and result are sharded along the same axes in the same order."""
    found, after = sharding_and_mesh(op.operands[0], around.meshes), sharding_of(op.results[0])
    if found is None or after is None or not is_static(op):
        return
    before, mesh = found
    if _axes_in_order(before, mesh) != _axes_in_order(after, mesh):
        return
    reshape = ShardedReshape(op, before, after, mesh)
    if reshape.is_local() or (by_exchange and reshape.exchange(around)):
        return
    reshape.replicate()


def _axes_in_order(sharding: TensorSharding, mesh: Mesh) -> tuple[AxisRef, ...]:
    return add_axes_or_merge((), sharding.sharding_axes, mesh)
