# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO's ops that cut tensors, join them, and write one into another.

A slice of a sharded dimension is selected from the shard, with zeros elsewhere; a concatenation joins elements that
neighbours exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.values import defining_op
from mlir_shard.resharding.windows import part_halo, window_halo
from mlir_shard.rules.builder import RuleBuilder, pointwise_but, resized, shape_of
from mlir_shard.rules.constants import CONSTANT_OPS
from mlir_shard.rules.partition import (
    BlockedTensor,
    Blocks,
    PartitionError,
    continue_with,
    drop_shardings,
    partition_rule,
    set_result_types,
    shards_along,
)
from mlir_shard.rules.registry import RuleOptions, has_static_shapes, sharding_rule
from mlir_shard.rules.stablehlo.layout import block_start
from mlir_shard.rules.windows import windows_along_dims
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.pad")
def pad(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a pad: if the size changes, elements move by known offsets, between neighbours."""
    if options.computing:
        return pointwise_but(op, {one.dim for one in windows_along_dims(op)}, FactorType.PERMUTATION)
    return resized(op, FactorType.PERMUTATION, blocked=options.conservative)


def _selected_dims(op: Any) -> tuple[int, ...]:
    """Returns the dimensions along which each device selects the part of a slice in its shard: the sum is the slice.

    The slice is not sharded along them, or an exchange with neighbours is not possible or would receive more.
    """
    if not has_static_shapes(op):
        return ()
    after = sharding_of(op.results[0])
    found = []
    for dim, (size, new_size) in enumerate(zip(op.operands[0].type.shape, op.results[0].type.shape, strict=True)):
        if size == new_size or (blocks := shards_along(op.operands[0], dim, op)) == 1:
            continue
        stays_whole = after is None or not after.dim_shardings[dim].axes
        start, stride = op.attributes["start_indices"][dim], op.attributes["strides"][dim]
        halo = None if stays_whole else window_halo(size, new_size, blocks, stride, 1, start)
        if halo is None or halo.below + halo.above > new_size:
            found.append(dim)
    return tuple(found)


@sharding_rule("stablehlo.slice", computing_context_key=_selected_dims)
def slice_(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a slice: that of a pad, or a sum of the parts that devices select, along `_selected_dims`."""
    if not options.computing:
        return resized(op, FactorType.PERMUTATION, blocked=options.conservative)
    return _selecting(op, _selected_dims(op), FactorType.PERMUTATION)


@sharding_rule("stablehlo.dynamic_slice")
def dynamic_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a dynamic slice: resized dimensions are replicated, as the shard with the slice is not known.

    To compute the op, each device can select the part of the slice in its shard: a sum.
    """
    if not options.computing:
        return resized(op, FactorType.NEED_REPLICATION, blocked=True)
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    selected = [dim for dim, size in enumerate(before) if size != after[dim]]
    return _selecting(op, selected, FactorType.NEED_REPLICATION)


def _selecting(op: Any, selected: Sequence[int], changed: FactorType) -> OpShardingRule:
    """Returns a rule with a factor for each dimension of the operand, and more for the result along `selected` ones.

    Along these, the factors of the operand are reductions, and the factors of the result are at the end.
    """
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op, 1)
    for dim, size in enumerate(before):
        type_ = FactorType.PASS_THROUGH if size == after[dim] else changed
        if dim in selected:
            builder.add_factor([dim], [None], size, FactorType.REDUCTION)
        else:
            builder.add_factor([dim], [dim], size, type_)
    for dim in selected:
        builder.add_factor([None], [dim], after[dim], FactorType.NEED_REPLICATION)
    return builder.build()


def _has_constant_starts(op: Any) -> bool:
    return all(defining_op(start, *CONSTANT_OPS) is not None for start in list(op.operands)[2:])


@sharding_rule("stablehlo.dynamic_update_slice", context_key=_has_constant_starts)
def dynamic_update_slice(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule by which every device writes into its shard the part of the update that falls there.

    Along a dimension where the update is smaller than the operand, the update must be replicated unless its starts are
    constant.
    """
    shape, update = (shape_of(operand.type) for operand in list(op.operands)[:2])
    of_update = FactorType.PASS_THROUGH if _has_constant_starts(op) else FactorType.NEED_REPLICATION
    builder = RuleBuilder.for_op(op, 2)
    for dim, (size, update_size) in enumerate(zip(shape, update, strict=True)):
        if size == update_size:
            builder.add_common_factor(dim, size)
        else:
            builder.add_factor([dim, None], [dim], size)
            builder.add_factor([None, dim], [None], update_size, of_update)
    return builder.build()


def _joins_slices(op: Any) -> bool:
    """Returns whether all operands are slices, or all are from one tensor and some are its slices, as in a rotation."""
    slices = [defining_op(value, "stablehlo.slice") for value in op.operands]
    sources = [value if cut is None else cut.operands[0] for value, cut in zip(op.operands, slices, strict=True)]
    return all(slices) or (any(slices) and all(source == sources[0] for source in sources))


def _exchanged_parts(op: Any) -> tuple[int, ...]:
    """Returns the operands that neighbours exchange for the shards of a result, rather than give entire to all devices.

    Returns no operands if the result is not sharded along the dimension.
    """
    dim = op.attributes["dimension"].value
    blocks, size = shards_along(op.results[0], dim, op), op.results[0].type.shape[dim]
    if blocks == 1 or not has_static_shapes(op):
        return ()
    found, start = [], 0
    for number, operand in enumerate(op.operands):
        own = operand.type.shape[dim]
        halo = part_halo(own, size, blocks, start)
        if halo is not None and halo.below + halo.above < own - own // blocks:
            found.append(number)
        start += own
    return tuple(found)


@sharding_rule("stablehlo.concatenate", context_key=_joins_slices, computing_context_key=_exchanged_parts)
def concatenate(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a concatenation: its dimension is replicated, or a permutation if slices are joined.

    To compute the op, neighbours exchange the operands whose elements are near, and each device has the others entire.
    """
    joined = op.attributes["dimension"].value
    if options.computing:
        return _concatenate_parts(op, joined, _exchanged_parts(op))
    type_ = FactorType.PERMUTATION if _joins_slices(op) else FactorType.NEED_REPLICATION
    builder = RuleBuilder.for_op(op)
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim != joined:
            builder.add_common_factor(dim, size)
        elif not options.conservative:
            builder.add_common_factor(dim, size, type_)
    return builder.build()


def _concatenate_parts(op: Any, joined: int, exchanged: Sequence[int]) -> OpShardingRule:
    builder = RuleBuilder.for_op(op)
    parts = [number in exchanged for number in range(len(op.operands))]
    for dim, size in enumerate(shape_of(op.results[0].type)):
        if dim != joined:
            builder.add_common_factor(dim, size)
        elif not exchanged:
            builder.add_common_factor(dim, size, FactorType.NEED_REPLICATION)
        else:
            builder.add_factor([dim if part else None for part in parts], [dim], size, FactorType.PERMUTATION)
    for number, part in enumerate(parts if exchanged else ()):
        if not part:
            alone = [joined if other == number else None for other in range(len(parts))]
            builder.add_factor(alone, [None], shape_of(op.operands[number].type)[joined], FactorType.NEED_REPLICATION)
    return builder.build()


@partition_rule("stablehlo.dynamic_slice", allows_uneven=True, pure=True)
def partition_dynamic_slice(op: Any, blocks: Blocks) -> None:
    """Makes a dynamic slice local: along `selected_dims` it takes the part in the shard, with zeros elsewhere."""
    set_result_types(op, blocks)
    op.attributes["slice_sizes"] = stablehlo.sizes(op.results[0].type.shape)
    dims = selected_dims(blocks)
    if dims:
        _give_room(op, 1, elements(op.attributes["slice_sizes"]), dims, blocks)


@partition_rule("stablehlo.dynamic_update_slice", checks_blocks=True, allows_uneven=True, pure=True)
def partition_dynamic_update_slice(op: Any, blocks: Blocks) -> None:
    """Makes the op local: each device writes the part of the update that falls in its shard.

    Along a sharded dimension that is written in part, the shard gets room for a full update on either side; elements
    written there are cut off again.
    """
    blocks.check_known()
    set_result_types(op, blocks)
    operand, update = blocks.operands[:2]
    if any(not start.is_whole for start in blocks.operands[2:]):
        raise PartitionError("its start indices are sharded")
    parts = []
    for dim, size in enumerate(operand.type.shape):
        if not operand.has_same_blocks(dim, blocks.results[0], dim):
            raise PartitionError(f"dimension {dim} is sharded differently in its operand and its result")
        if update.type.shape[dim] == size:
            if not operand.has_same_blocks(dim, update, dim):
                raise PartitionError(f"dimension {dim} is sharded differently in its operand and its update")
        elif update.counts[dim] > 1:
            raise PartitionError(
                f"dimension {dim} of its update is sharded, but covers only a part of its operand's dimension"
            )
        elif operand.counts[dim] > 1:
            parts.append(dim)
    if parts:
        _write_with_room(op, blocks, parts)


def _write_with_room(op: Any, blocks: Blocks, dims: list[int]) -> None:
    update, shape = blocks.operands[1].type.shape, blocks.operands[0].block_shape
    _give_room(op, 2, update, dims, blocks)
    result, room = op.results[0], [update[dim] if dim in dims else 0 for dim in range(len(shape))]
    result.set_type(op.operands[0].type)
    limits = [low + size for low, size in zip(room, shape, strict=True)]
    continue_with(op, 0, lambda: stablehlo.slice_(result, room, limits))


def _give_room(op: Any, first_start: int, shape: Sequence[int], dims: Sequence[int], blocks: Blocks) -> None:
    """Gives an op on a slice of `shape`, whose starts are operands, a first operand `with_room` along dimensions."""
    with ir.InsertionPoint(op), op.location:
        starts = [stablehlo.convert(start, stablehlo.i64()) for start in list(op.operands)[first_start:]]
        for dim in dims:
            size = blocks.operands[0].type.shape[dim] if blocks.rule is None else blocks.operand_size(0, dim)
            last = stablehlo.splat(starts[dim].type, size - shape[dim])
            starts[dim] = stablehlo.build("clamp", last.type, stablehlo.splat(last.type, 0), starts[dim], last)
        op.operands[0], starts = with_room(op.operands[0], starts, shape, dims, blocks)
    for number, start in enumerate(starts, first_start):
        op.operands[number] = start


def selected_dims(blocks: Blocks) -> list[int]:
    """Returns the dimensions along which the first operand is sharded and the first result is not."""
    if not blocks.operands or not blocks.results:
        return []
    counts = zip(blocks.operands[0].counts, blocks.results[0].counts, strict=True)
    return [dim for dim, (before, after) in enumerate(counts) if before > 1 and after == 1]


def with_room(
    value: Any, starts: Sequence[Any], shape: Sequence[int], dims: Sequence[int], blocks: Blocks
) -> tuple[Any, list[Any]]:
    """Returns a shard with zeros around it, and the start in it of a slice of `shape` of the global tensor.

    `starts` are scalars of i64; the slice has to be inside of the global tensor. Along `dims` there is room for a full
    slice on either side; a slice that is further away begins at an end, where it reads only zeros. Built at the current
    insertion point.
    """
    tensor: BlockedTensor = blocks.operands[0]
    room = [shape[dim] if dim in dims else 0 for dim in range(len(shape))]
    zero = stablehlo.splat(stablehlo.tensor(value.type.element_type), 0)
    padded = stablehlo.pad(value, zero, room, room, [0] * len(shape))
    local = list(starts)
    for dim in dims:
        type_ = local[dim].type
        moved = stablehlo.build("subtract", type_, local[dim], block_start(tensor, dim, blocks))
        local[dim] = stablehlo.build("add", type_, moved, stablehlo.splat(type_, room[dim]))
    return padded, local


@dataclass(frozen=True, slots=True)
class Part:
    """The elements that a device has of an operand that is the part of a result from `start` on.

    The device of shard p has the operand's elements from `p * step - below` on.
    """

    value: Any
    start: int
    step: int
    below: int


@partition_rule("stablehlo.concatenate", allows_uneven=True, pure=True)
def partition_concatenate(op: Any, blocks: Blocks) -> None:
    """Makes a concatenation local: along its dimension, each device joins the parts that the caller brought to it."""
    dim = op.attributes["dimension"].value
    if not blocks.windows:
        set_result_types(op, blocks)
        return
    result = blocks.results[0]
    windows = {window.operand: window for window in blocks.windows}
    parts: list[Part] = []
    start = 0
    for number, value in enumerate(op.operands):
        window = windows.get(number)
        halo = None if window is None else window.halo(result.counts[dim])
        step, below = (0, 0) if halo is None else (halo.block, halo.below)
        parts.append(Part(value, start, step, below))
        start += blocks.operand_size(number, dim) if window is None else window.size
    with ir.InsertionPoint(op), op.location:
        size = result.block_shape[dim]

        def place(of_block: Callable[[int], int]) -> Any:
            return stablehlo.reshape(blocks.entry(result.axes[dim], of_block, None), ())

        value = joined_parts(parts, dim, size, place)
    drop_shardings(op)
    # The op stays without uses, with a valid type.
    whole = list(value.type.shape)
    whole[dim] = sum(part.value.type.shape[dim] for part in parts)
    op.results[0].set_type(stablehlo.with_shape(value.type, whole))
    op.results[0].replace_all_uses_with(value)


def joined_parts(parts: Sequence[Part], dim: int, size: int, place: Callable[[Callable[[int], int]], Any]) -> Any:
    """Returns the shard, of `size` elements, of the concatenation of parts, built at the current insertion point.

    `place` returns, as a scalar of i64, the value of a function of this device's shard index.
    """
    begin = place(lambda number: number * size)
    chosen = None
    for part in parts:
        value = _at_block(part, dim, size, place)
        if chosen is None:
            chosen = value
            continue
        type_ = stablehlo.tensor(stablehlo.i64(), *value.type.shape)
        positions = stablehlo.build("iota", type_, iota_dimension=stablehlo.integer(dim))
        first = stablehlo.build("subtract", begin.type, stablehlo.splat(begin.type, part.start), begin)
        first = stablehlo.broadcast(first, value.type.shape)
        chosen = stablehlo.select(stablehlo.compare("GE", positions, first), value, chosen)
    return chosen


def _at_block(part: Part, dim: int, size: int, place: Callable[[Callable[[int], int]], Any]) -> Any:
    """Returns a shard with the elements of a part where they are in the shard."""
    rank, own = part.value.type.rank, part.value.type.shape[dim]
    room = [size if one == dim else 0 for one in range(rank)]
    zero = stablehlo.splat(stablehlo.tensor(part.value.type.element_type), 0)
    padded = stablehlo.pad(part.value, zero, room, room, [0] * rank)

    def start(number: int) -> int:
        # If no element of the part is in the shard, its values are not used.
        wanted = number * size - part.start - (number * part.step - part.below) + size
        return min(max(wanted, 0), own + size)

    origin = stablehlo.splat(stablehlo.tensor(stablehlo.i64()), 0)
    starts = [place(start) if one == dim else origin for one in range(rank)]
    shape = [size if one == dim else other for one, other in enumerate(part.value.type.shape)]
    return stablehlo.dynamic_slice(padded, starts, shape)
