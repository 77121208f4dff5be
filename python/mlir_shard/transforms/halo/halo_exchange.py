# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges of shards with neighbours, as StableHLO in a manual computation.

A border that no device has is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.windows import Halo
from mlir_shard.sharding import AxisRef, ManualAxes, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.axes import total_size
from mlir_shard.transforms.collectives.stablehlo import StablehloCollectives
from mlir_shard.transforms.collectives.stablehlo_halo import received


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchange along a dimension that is sharded along `axes`.

    If `is_affine`, the start of a shard's piece is affine in the number of the shard; else the starts are in a table.
    """

    dim: int
    axes: tuple[AxisRef, ...]
    halo: Halo
    is_affine: bool = True


@dataclass(frozen=True, slots=True)
class ManualPart:
    """The part of a program that is manual along `manual_axes`."""

    builder: StablehloCollectives
    manual_axes: frozenset[str]

    def shards(self, sharding: TensorSharding, dim: int) -> int:
        """Returns the number of shards of a dimension along the manual axes."""
        axes = sharding.dim_shardings[dim].axes
        return total_size((axis for axis in axes if axis.name in self.manual_axes), self.builder.mesh)

    def takes(self, shape: Sequence[int], sharding: TensorSharding) -> bool:
        """Returns whether a tensor of a shape can be an operand or a result.

        In each dimension the manual axes have to come before the free ones, and the shards have to be even.
        """
        for dim, (size, of) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
            are_manual = [axis.name in self.manual_axes for axis in of.axes]
            if are_manual != sorted(are_manual, reverse=True) or size % self.shards(sharding, dim):
                return False
        return True

    def local_shape(self, shape: Sequence[int], sharding: TensorSharding) -> list[int]:
        """Returns the local shape of a tensor with even shards."""
        return [size // self.shards(sharding, dim) for dim, size in enumerate(shape)]

    def build(
        self,
        operands: Sequence[tuple[Any, TensorSharding]],
        type_: Any,
        out_sharding: TensorSharding,
        body: Callable[[Sequence[Any]], Any],
    ) -> Any:
        """Builds a computation like `build_all`, with one result of a type, whose shard `body` returns."""
        return self.build_all(operands, [(type_, out_sharding)], lambda blocks: [body(blocks)])[0]

    def build_all(
        self,
        operands: Sequence[tuple[Any, TensorSharding]],
        results: Sequence[tuple[Any, TensorSharding]],
        body: Callable[[Sequence[Any]], Sequence[Any]],
    ) -> list[Any]:
        """Builds a manual computation at the current insertion point; returns its results, each of a type and sharding.

        `body` builds its contents: the shards of the results from those of the operands.
        """
        names = (name for name in self.builder.mesh.axis_names if name in self.manual_axes)
        manual = sdy.ManualComputationOp(
            [type_ for type_, _ in results],
            [value for value, _ in operands],
            TensorShardingPerValue(tuple(sharding for _, sharding in operands)),
            TensorShardingPerValue(tuple(sharding for _, sharding in results)),
            ManualAxes(tuple(names)),
        ).operation
        types = [self.local_type(value.type, sharding) for value, sharding in operands]
        block = manual.regions[0].blocks.append(*types, arg_locs=[ir.Location.current] * len(types))
        with ir.InsertionPoint(block):
            sdy.ReturnOp(list(body(list(block.arguments))))
        return list(manual.results)

    def local_type(self, type_: Any, sharding: TensorSharding) -> Any:
        """Returns the local type of a tensor with even shards, and other types unchanged."""
        if not isinstance(type_, ir.RankedTensorType) or not type_.rank:
            return type_
        return stablehlo.with_shape(type_, self.local_shape(type_.shape, sharding))

    def exchange(self, value: Any, padding: Any, exchange: Exchange, local: TensorSharding, *, is_zero: bool) -> Any:
        """Builds an exchange; returns the pieces, with the padding beyond the dimension, which is zero if `is_zero`."""
        halo, dim = exchange.halo, exchange.dim
        # A segment that comes from `offset` shards to the left is that of the shard there, if there is one.
        segments = [
            received(value, padding, exchange.axes, offset, self.builder, is_zero=is_zero) if offset else value
            for offset in range(halo.left_hops, -halo.right_hops - 1, -1)
        ]
        buffer = stablehlo.concatenate(segments, dim, local)
        edge = halo.footprint * halo.dilation
        edges, between = [[0] * value.type.rank for _ in range(2)]
        edges[dim], between[dim] = edge, halo.dilation - 1
        buffer = stablehlo.pad(buffer, padding, edges, edges, between, local)
        index = self.builder.shard_number(exchange.axes)
        starts = [edge + start for start in halo.starts]
        if exchange.is_affine:
            step, base = stablehlo.scalar(starts[1] - starts[0]), stablehlo.scalar(starts[0])
            start = stablehlo.binary("add", stablehlo.binary("multiply", index, step), base)
        else:
            start = stablehlo.entry(starts, index)
        zero = stablehlo.scalar(0)
        if exchange.is_affine:
            start = stablehlo.binary("maximum", start, zero)
        positions = [start if one == dim else zero for one in range(value.type.rank)]
        shape = [*value.type.shape[:dim], halo.footprint, *value.type.shape[dim + 1 :]]
        return stablehlo.dynamic_slice(buffer, positions, shape, local)

    def shift(self, value: Any, dim: int, amount: int, sharding: TensorSharding) -> Any:
        """Builds a shift of the elements of a sharded dimension by `amount`; returns the shard, with zeros in front."""
        axes = tuple(axis for axis in sharding.dim_shardings[dim].axes if axis.name in self.manual_axes)
        local = sharding.without_axes(self.manual_axes)
        shape = list(value.type.shape)
        hops, rest = divmod(amount, shape[dim])
        near, far = (
            received(value, None, axes, count, self.builder, sharding=local) if count else value
            for count in (hops, hops + 1)
        )
        cut = shape[dim] - rest
        starts, limits = [0] * len(shape), list(shape)
        starts[dim] = limits[dim] = cut
        tail = stablehlo.slice_(far, starts, shape, sharding=local)
        head = stablehlo.slice_(near, [0] * len(shape), limits, sharding=local)
        return stablehlo.concatenate([tail, head], dim, local)
