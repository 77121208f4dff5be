# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges of shards with neighbours as StableHLO in a manual computation.

Each shard gets its neighbours', behind each other in one buffer, and takes out the piece it needs. A neighbour that is
not there sends zeros, so its place is filled where the padding is anything else. The idea is Shardy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.resharding.halo import Halo
from mlir_shard.resharding.shard_shift import Digit, shard_index, shift_pairs
from mlir_shard.sharding import AxisRef, ManualAxes, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.axis_lists import total_size
from mlir_shard.transforms.reshard import stablehlo_pieces as hlo


@dataclass(slots=True)
class Channels:
    """The numbers that collectives of a module go by: the next one is free."""

    next_free: int

    def take(self) -> int:
        """A number that nobody has."""
        self.next_free += 1
        return self.next_free - 1


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of a mesh, and how a program knows its own."""

    mesh: Mesh
    by_replica: bool
    channels: Channels

    def shard_index(self, axes: Sequence[AxisRef]) -> Any:
        """This device's number among the shards along axes, at the current insertion point."""
        unsigned = hlo.scalar_type(ir.IntegerType.get_unsigned(32))
        own = hlo.operation("stablehlo.replica_id" if self.by_replica else "stablehlo.partition_id", unsigned)
        device = hlo.operation("stablehlo.convert", hlo.index_type(), own)
        if self.mesh.device_ids:
            positions = {device: position for position, device in enumerate(self.mesh.devices)}
            numbers = [shard_index(axes, self.mesh, positions[one]) for one in sorted(positions)]
            return hlo.index_table(numbers, device)
        index = None
        for axis in axes:
            digit = Digit.of(axis, self.mesh)
            coordinate = device
            if digit.stride > 1:
                coordinate = _arithmetic("divide", coordinate, hlo.index_constant(digit.stride))
            if digit.size < self.mesh.total_size:
                coordinate = _arithmetic("remainder", coordinate, hlo.index_constant(digit.size))
            if index is None:
                index = coordinate
            else:
                index = _arithmetic("multiply", index, hlo.index_constant(digit.size))
                index = _arithmetic("add", index, coordinate)
        return hlo.index_constant(0) if index is None else index


@dataclass(frozen=True, slots=True)
class Exchange:
    """The exchange along a dimension that is sharded along `axes`.

    `is_affine` where the piece that a shard takes moves on with its number; else the pieces are in a table.
    """

    dim: int
    axes: tuple[AxisRef, ...]
    halo: Halo
    is_affine: bool = True


@dataclass(frozen=True, slots=True)
class ManualPart:
    """The part of a program that is written for one device along `manual_axes`."""

    devices: Devices
    manual_axes: frozenset[str]

    def shards(self, sharding: TensorSharding, dim: int) -> int:
        """The number of shards of a dimension inside."""
        axes = sharding.dim_shardings[dim].axes
        return total_size((axis for axis in axes if axis.name in self.manual_axes), self.devices.mesh)

    def takes(self, shape: Sequence[int], sharding: TensorSharding) -> bool:
        """Whether a tensor of a shape can be an operand or a result.

        In each dimension the manual axes have to come before those that stay free, and the shards to be even.
        """
        for dim, (size, of) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
            are_manual = [axis.name in self.manual_axes for axis in of.axes]
            if are_manual != sorted(are_manual, reverse=True) or size % self.shards(sharding, dim):
                return False
        return True

    def local_shape(self, shape: Sequence[int], sharding: TensorSharding) -> list[int]:
        """The shape inside of a tensor that is of even shards outside."""
        return [size // self.shards(sharding, dim) for dim, size in enumerate(shape)]

    def build(
        self,
        operands: Sequence[tuple[Any, TensorSharding]],
        type_: Any,
        out_sharding: TensorSharding,
        body: Callable[[Sequence[Any]], Any],
    ) -> Any:
        """As `build_all`, with one result of a type, whose block `body` returns."""
        return self.build_all(operands, [(type_, out_sharding)], lambda blocks: [body(blocks)])[0]

    def build_all(
        self,
        operands: Sequence[tuple[Any, TensorSharding]],
        results: Sequence[tuple[Any, TensorSharding]],
        body: Callable[[Sequence[Any]], Sequence[Any]],
    ) -> list[Any]:
        """The results, each of a type and sharding, of a manual computation built at the current insertion point.

        `body` builds what is in it: the blocks of the results from those of the operands.
        """
        names = (name for name in self.devices.mesh.axis_names if name in self.manual_axes)
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
        """The type inside of a tensor of even shards; what is no ranked tensor is as it is."""
        if not isinstance(type_, ir.RankedTensorType) or not type_.rank:
            return type_
        return hlo.with_shape(type_, self.local_shape(type_.shape, sharding))

    def exchange(self, value: Any, padding: Any, exchange: Exchange, local: TensorSharding, *, is_zero: bool) -> Any:
        """The pieces of an exchange; beyond the dimension there is the padding, which `is_zero` or not."""
        halo, dim = exchange.halo, exchange.dim
        segments = self._neighbours(value, padding, exchange, is_zero=is_zero)
        buffer = hlo.concatenate(segments, dim, local)
        edge = halo.footprint * halo.dilation
        edges, between = [[0] * value.type.rank for _ in range(2)]
        edges[dim], between[dim] = edge, halo.dilation - 1
        buffer = hlo.pad(buffer, padding, edges, edges, between, local)
        index = self.devices.shard_index(exchange.axes)
        starts = [edge + start for start in halo.starts]
        if exchange.is_affine:
            step, base = hlo.index_constant(starts[1] - starts[0]), hlo.index_constant(starts[0])
            start = _arithmetic("add", _arithmetic("multiply", index, step), base)
            zero = hlo.index_constant(0)
            start = _arithmetic("maximum", start, zero)
        else:
            start = hlo.index_table(starts, index)
            zero = hlo.index_constant(0)
        positions = [start if one == dim else zero for one in range(value.type.rank)]
        shape = [*value.type.shape[:dim], halo.footprint, *value.type.shape[dim + 1 :]]
        return hlo.dynamic_piece(buffer, positions, shape, local)

    def _neighbours(self, value: Any, padding: Any, exchange: Exchange, *, is_zero: bool) -> list[Any]:
        halo = exchange.halo
        # A segment that comes from `offset` shards to the left is that of the shard there, if there is one.
        return [
            self._segment(value, padding, exchange, offset, is_zero=is_zero) if offset else value
            for offset in range(halo.left_hops, -halo.right_hops - 1, -1)
        ]

    def _segment(self, value: Any, padding: Any, exchange: Exchange, offset: int, *, is_zero: bool) -> Any:
        pairs = shift_pairs(exchange.axes, self.devices.mesh, offset)
        if not pairs:
            return hlo.broadcast(padding, value.type)
        sent = hlo.collective_permute(value, pairs, self.devices.channels.take())
        if is_zero:
            return sent
        last = len(exchange.halo.starts) - 1
        bound, direction = (offset, "GE") if offset > 0 else (last + offset, "LE")
        index = self.devices.shard_index(exchange.axes)
        flag = hlo.scalar_type(ir.IntegerType.get_signless(1))
        comparison = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
        is_there = hlo.operation(
            "stablehlo.compare", flag, index, hlo.index_constant(bound), comparison_direction=comparison
        )
        return hlo.operation("stablehlo.select", value.type, is_there, sent, hlo.broadcast(padding, value.type))

    def shift(self, value: Any, dim: int, amount: int, sharding: TensorSharding) -> Any:
        """The value inside with all elements of a sharded dimension `amount` further on; in front there are zeros."""
        axes = tuple(axis for axis in sharding.dim_shardings[dim].axes if axis.name in self.manual_axes)
        local = sharding.without_axes(self.manual_axes)
        shape = list(value.type.shape)
        hops, rest = divmod(amount, shape[dim])
        near, far = (self._from_left(value, axes, count, local) for count in (hops, hops + 1))
        cut = shape[dim] - rest
        starts, limits = [0] * len(shape), list(shape)
        starts[dim] = limits[dim] = cut
        tail = hlo.piece(far, starts, shape, local)
        head = hlo.piece(near, [0] * len(shape), limits, local)
        return hlo.concatenate([tail, head], dim, local)

    def _from_left(self, value: Any, axes: tuple[AxisRef, ...], hops: int, local: TensorSharding) -> Any:
        if not hops:
            return value
        pairs = shift_pairs(axes, self.devices.mesh, hops)
        if pairs:
            return hlo.collective_permute(value, pairs, self.devices.channels.take(), local)
        return hlo.broadcast(hlo.scalar_constant(hlo.zero(value.type.element_type)), value.type, local)


def _arithmetic(name: str, left: Any, right: Any) -> Any:
    return hlo.operation(f"stablehlo.{name}", left.type, left, right)
