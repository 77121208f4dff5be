# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of a global StableHLO program cut at the borders of shards: one dimension of shards, one inside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.sharding_steps import Reshard
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.transforms.insertion import apply


@dataclass(frozen=True, slots=True)
class ShardedValue:
    """A value with the axes of each of its dimensions, on the mesh that `mesh` refers to.

    New values are built at the current insertion point, each with its sharding.
    """

    value: Any
    axes: tuple[Axes, ...]
    mesh: Any

    @staticmethod
    def of(value: Any, mesh: Any) -> ShardedValue:
        """Returns a value with the axes of its sharding."""
        sharding, rank = sharding_of(value), value.type.rank
        axes = ((),) * rank if sharding is None else tuple(dim.axes for dim in sharding.dim_shardings)
        return ShardedValue(value, axes, mesh)

    @property
    def sharding(self) -> TensorSharding:
        """The closed sharding along the axes."""
        return TensorSharding.closed_with(self.axes, self.mesh)

    def cut(self, dim: int, axes: Axes, shards: int) -> ShardedValue:
        """Splits a dimension in two: the shards, sharded along the axes, and the elements of a shard."""
        shape = list(self.value.type.shape)
        shape[dim : dim + 1] = [shards, shape[dim] // shards]
        return self._reshaped(shape, (*self.axes[:dim], axes, (), *self.axes[dim + 1 :]))

    def with_parts(self, dim: int, count: int, axes: Axes) -> ShardedValue:
        """Splits a dimension in two: `count` parts, not sharded, and the elements of a part, sharded along the axes."""
        shape = list(self.value.type.shape)
        shape[dim : dim + 1] = [count, shape[dim] // count]
        return self._reshaped(shape, (*self.axes[:dim], (), axes, *self.axes[dim + 1 :]))

    def uncut(self, dim: int) -> ShardedValue:
        """Merges a dimension of shards and the dimension of their elements."""
        shape = list(self.value.type.shape)
        shape[dim : dim + 2] = [shape[dim] * shape[dim + 1]]
        return self._reshaped(shape, (*self.axes[: dim + 1], *self.axes[dim + 2 :]))

    def along(self, dim: int, start: int, limit: int) -> ShardedValue:
        """Returns the elements of a dimension from `start` up to `limit`."""
        return self._with(stablehlo.along(self.value, dim, start, limit, self.sharding))

    def padded(self, dim: int, low: int, high: int, fill: Any) -> ShardedValue:
        """Returns the value padded with a scalar at both ends of a dimension; negative amounts cut elements off."""
        if low == high == 0:
            return self
        none = [0] * self.value.type.rank
        before, behind = list(none), list(none)
        before[dim], behind[dim] = low, high
        return self._with(stablehlo.pad(self.value, fill, before, behind, none, self.sharding))

    def resharded(self, dim: int, axes: Axes) -> ShardedValue:
        """Returns the value with a dimension sharded along other axes."""
        moved = replace(self, axes=(*self.axes[:dim], axes, *self.axes[dim + 1 :]))
        return moved._with(apply(self.value, [Reshard(moved.sharding)]))

    def with_borders(self, dim: int, before: int, after: int, fill: Any) -> ShardedValue:
        """Returns shards, cut along `dim`, with border elements of the neighbouring shards, and `fill` at both ends."""
        size = self.value.type.shape[dim + 1]
        pieces = [self]
        if before:
            pieces.insert(0, self.along(dim + 1, size - before, size).padded(dim, 1, -1, fill))
        if after:
            pieces.append(self.along(dim + 1, 0, after).padded(dim, -1, 1, fill))
        if len(pieces) == 1:
            return self
        return self._with(stablehlo.concatenate([piece.value for piece in pieces], dim + 1, self.sharding))

    def with_borders_added(self, dim: int, before: int, after: int, zero: Any) -> ShardedValue:
        """Removes the borders of `with_borders` from shards cut along `dim`, and adds them to their original shards."""
        width = self.value.type.shape[dim + 1]
        size = width - before - after
        total = self.along(dim + 1, before, before + size)
        if after:
            behind = self.along(dim + 1, before + size, width).padded(dim, 1, -1, zero)
            total = total._plus(behind.padded(dim + 1, 0, size - after, zero))
        if before:
            front = self.along(dim + 1, 0, before).padded(dim, -1, 1, zero)
            total = total._plus(front.padded(dim + 1, size - before, 0, zero))
        return total

    def in_features(self, dim: int, feature: int) -> ShardedValue:
        """Returns the shards of a value that is cut along `dim` as the major part of dimension `feature`."""
        feature += feature > dim
        order = [one for one in range(self.value.type.rank) if one != dim]
        at = order.index(feature)
        order.insert(at, dim)
        moved = ShardedValue(self.value, tuple(self.axes[one] for one in order), self.mesh)
        shape = [self.value.type.shape[one] for one in order]
        type_ = stablehlo.with_shape(self.value.type, shape)
        permutation = stablehlo.sizes(order)
        moved = moved._with(
            stablehlo.build("transpose", type_, self.value, sharding=moved.sharding, permutation=permutation)
        )
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
        return moved._reshaped(shape, (*moved.axes[:at], (*moved.axes[at], *moved.axes[at + 1]), *moved.axes[at + 2 :]))

    def _plus(self, other: ShardedValue) -> ShardedValue:
        return self._with(stablehlo.binary("add", self.value, other.value, self.sharding))

    def _reshaped(self, shape: Sequence[int], axes: tuple[Axes, ...]) -> ShardedValue:
        made = ShardedValue(self.value, axes, self.mesh)
        type_ = stablehlo.with_shape(self.value.type, shape)
        return made._with(stablehlo.build("reshape", type_, self.value, sharding=made.sharding))

    def _with(self, value: Any) -> ShardedValue:
        return replace(self, value=value)
