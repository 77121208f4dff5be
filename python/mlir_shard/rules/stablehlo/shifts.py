# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of StableHLO ops that move elements by known amounts: pads, slices and reverses.

They are local if no device needs elements of another: the elements of its shard of the result are in its shard of the
operand, or are padding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.rules.partition import (
    BlockedTensor,
    Blocks,
    PartitionError,
    continue_with,
    drop_shardings,
    partition_rule,
    set_result_types,
)
from mlir_shard.rules.stablehlo.slicing import selected_dims, with_room
from mlir_shard.rules.stablehlo.windows import pad_within_blocks
from mlir_shard.rules.windows import moving_windows


def _check_same_blocks(before: BlockedTensor, after: BlockedTensor, but_for: Collection[int] = ()) -> None:
    for dim in range(len(before.counts)):
        if dim not in but_for and not before.has_same_blocks(dim, after, dim):
            raise PartitionError(f"dimension {dim} is sharded differently in its operand and its result")


@partition_rule("stablehlo.slice", checks_blocks=True, allows_uneven=True, pure=True)
def slice_of_blocks(op: Any, blocks: Blocks) -> None:
    """Makes a slice local, if each of its shards is in the same shard of the operand.

    If the start of that part differs between shards, each device first takes out the range that has its part. A caller
    that gives the axes of factors has brought every device the range that its shard needs.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    drop_shardings(op)
    selected = selected_dims(blocks)
    if selected:
        _take_own_part(op, selected, blocks)
    if blocks.rule is not None and blocks.factor_axes:
        _slice_stretches(op, selected, blocks)
        return
    (before,), (after,) = blocks.operands, blocks.results
    _check_same_blocks(before, after, selected)
    starts, limits, strides = (elements(op.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    moving: dict[int, list[int]] = {}
    stretch = list(op.operands[0].type.shape)
    for dim, count in enumerate(before.counts):
        if count == 1 or dim in selected:
            continue
        size, new_size, stride = before.block_shape[dim], after.block_shape[dim], strides[dim]
        begins = [starts[dim] + number * (new_size * stride - size) for number in range(count)]
        span = max(0, (new_size - 1) * stride + 1)
        if any(begin < 0 or begin + span > size for begin in begins):
            raise PartitionError(
                f"its slice of dimension {dim}, which has {count} shards, requires elements of other shards"
            )
        if len(set(begins)) > 1:
            moving[dim], stretch[dim] = begins, span
        starts[dim] = 0 if dim in moving else begins[0]
        limits[dim] = min(starts[dim] + new_size * stride, stretch[dim])
    if moving:
        with ir.InsertionPoint(op), op.location:
            zero = stablehlo.splat(stablehlo.tensor(stablehlo.i64()), 0)
            first = [zero] * len(stretch)
            for dim, begins in moving.items():
                first[dim] = stablehlo.reshape(blocks.entry(before.axes[dim], begins.__getitem__, None), ())
            op.operands[0] = stablehlo.dynamic_slice(op.operands[0], first, stretch)
    _set_bounds(op, starts, limits)


def _set_bounds(op: Any, starts: Sequence[int], limits: Sequence[int]) -> None:
    op.attributes["start_indices"], op.attributes["limit_indices"] = map(stablehlo.sizes, (starts, limits))


def _take_own_part(op: Any, dims: list[int], blocks: Blocks) -> None:
    """Moves the part of the slice in the shard, with zeros for the rest, to the beginning of some dimensions."""
    starts, limits, strides = (elements(op.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    value = op.operands[0]
    span = list(value.type.shape)
    for dim in dims:
        span[dim] = max(0, (op.results[0].type.shape[dim] - 1) * strides[dim] + 1)
    with ir.InsertionPoint(op), op.location:
        scalar = stablehlo.tensor(stablehlo.i64())
        begins = [stablehlo.splat(scalar, start if dim in dims else 0) for dim, start in enumerate(starts)]
        padded, local = with_room(value, begins, span, dims, blocks)
        op.operands[0] = stablehlo.dynamic_slice(padded, local, span)
    for dim in dims:
        starts[dim], limits[dim] = 0, span[dim]
    _set_bounds(op, starts, limits)


def _slice_stretches(op: Any, selected: list[int], blocks: Blocks) -> None:
    starts, limits = (elements(op.attributes[name]) for name in ("start_indices", "limit_indices"))
    moving = {window.dim for window in moving_windows(op, blocks)}
    for dim, size in enumerate(op.operands[0].type.shape):
        if dim in moving or (blocks.operands[0].counts[dim] > 1 and dim not in selected):
            starts[dim], limits[dim] = 0, size
    _set_bounds(op, starts, limits)


@dataclass(frozen=True, slots=True)
class _Shift:
    """The padding of a dimension: `offsets` are the positions of the elements of each shard in its result shard."""

    offsets: tuple[int, ...]
    between: int
    size: int
    new_size: int

    @staticmethod
    def of(op: Any, blocks: Blocks, dim: int) -> _Shift:
        (before, _), (after,) = blocks.operands, blocks.results
        low, between = (op.attributes[name][dim] for name in ("edge_padding_low", "interior_padding"))
        size, new_size = before.block_shape[dim], after.block_shape[dim]
        step = size * (between + 1) - new_size
        offsets = tuple(low + number * step for number in range(before.counts[dim]))
        return _Shift(offsets, between, size, new_size)

    @property
    def spread_size(self) -> int:
        """The size of a shard with padding between its elements."""
        return max(0, (self.size - 1) * (self.between + 1) + 1)

    @property
    def is_uniform(self) -> bool:
        """Whether all shards have equal padding."""
        return len(set(self.offsets)) == 1

    @property
    def stays_in_blocks(self) -> bool:
        """Whether each shard of the result is made only of the same shard of the operand, and of padding.

        Elements beyond their shard of the result are lost, which is correct only at the ends of the tensor.
        """
        last = len(self.offsets) - 1
        if not self.size:
            return True
        starts_inside = all(offset >= 0 for number, offset in enumerate(self.offsets) if number)
        ends = (offset + self.spread_size for number, offset in enumerate(self.offsets) if number < last)
        return starts_inside and all(end <= self.new_size for end in ends)

    @property
    def low(self) -> int:
        """The padding in front: that of all shards if it is uniform, else enough for every shard."""
        return self.offsets[0] if self.is_uniform else max(0, *self.offsets)

    @property
    def high(self) -> int:
        """The padding behind: that of all shards if it is uniform, else enough for every shard."""
        if self.is_uniform:
            return self.new_size - self.spread_size - self.offsets[0]
        return max(0, self.new_size - min(self.offsets) - self.spread_size)


@partition_rule("stablehlo.pad", checks_blocks=True, allows_uneven=True, pure=True)
def pad_of_blocks(op: Any, blocks: Blocks) -> None:
    """Makes a pad local: every shard is padded according to its position in the dimension.

    If the padding differs between shards, all are padded enough for each, and each device takes out its own part. A
    caller that gives the axes of factors has brought every device the elements of its shard.
    """
    blocks.check_known()
    drop_shardings(op)
    if blocks.rule is not None and blocks.factor_axes:
        set_result_types(op, blocks)
        pad_within_blocks(op, blocks)
        return
    before, padding = blocks.operands
    _check_same_blocks(before, blocks.results[0])
    if not padding.is_whole:
        raise PartitionError("its padding value is sharded")
    shifts = [_Shift.of(op, blocks, dim) for dim in range(len(before.counts))]
    for dim, shift in enumerate(shifts):
        if len(shift.offsets) > 1 and not shift.stays_in_blocks:
            raise PartitionError(
                f"its padding moves elements of dimension {dim} between its {len(shift.offsets)} shards"
            )
    low, high = [shift.low for shift in shifts], [shift.high for shift in shifts]
    op.attributes["edge_padding_low"], op.attributes["edge_padding_high"] = map(stablehlo.sizes, (low, high))
    if all(shift.is_uniform for shift in shifts):
        set_result_types(op, blocks)
        return
    sizes = zip(low, shifts, high, strict=True)
    result, local = op.results[0], blocks.result_types[0]
    result.set_type(stablehlo.with_shape(local, [before + one.spread_size + after for before, one, after in sizes]))

    def piece() -> Any:
        starts = [_start(shift, axes, blocks) for shift, axes in zip(shifts, before.axes, strict=True)]
        return stablehlo.dynamic_slice(result, starts, local.shape)

    continue_with(op, 0, piece)


def _start(shift: _Shift, axes: tuple[int, ...], blocks: Blocks) -> Any:
    starts = [shift.low - offset for offset in shift.offsets]
    if shift.is_uniform:
        return stablehlo.splat(stablehlo.tensor(stablehlo.i64()), starts[0])
    return stablehlo.reshape(blocks.entry(axes, starts.__getitem__, None), ())


@partition_rule("stablehlo.reverse", checks_blocks=True, allows_uneven=True, pure=True)
def reverse(op: Any, blocks: Blocks) -> None:
    """Makes a reverse local: each device reverses its shard, and gets that of the opposite device if axes are given."""
    blocks.check_known()
    set_result_types(op, blocks)
    (before,), (after,) = blocks.operands, blocks.results
    reversed_dims = elements(op.attributes["dimensions"])
    if blocks.rule is not None and blocks.factor_axes:
        axes = [axis for dim in reversed_dims for axis in before.axes[dim]]
        if axes:
            continue_with(op, 0, lambda: blocks.mirror(op.results[0], axes))
        return
    for dim, count in enumerate(before.counts):
        if dim not in reversed_dims or count == 1:
            is_local = before.has_same_blocks(dim, after, dim)
        else:
            opposite = [count - 1 - number for number in before.block_numbers(dim)]
            is_local = after.counts[dim] == count and list(after.block_numbers(dim)) == opposite
        if not is_local:
            raise PartitionError(f"a device requires the shard of another device along dimension {dim}")
