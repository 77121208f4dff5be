# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of pads: the caller brings the elements of a result shard to its device, which pads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.index_arithmetic import constant, multiply
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.partition import Blocks, continue_with, partition_rule, set_result_types
from mlir_shard.rules.uneven_shards import Bounds, inside_bounds
from mlir_shard.rules.windows import Window, moving_windows, padding_of, scalar_of_region
from mlir_shard.sharding import OpShardingRule

_tensor = dialect("tensor")
_tosa = dialect("tosa")


def _moved_in_place(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns the factors of dimensions that are padded, or may be: their elements move."""
    amounts = padding_of(op)
    return [
        factor
        for dim, of_dim in enumerate(rule.operand_mappings[0].dim_mappings)
        if amounts is None or amounts[dim] != (0, 0)
        for factor in of_dim.factor_indices
    ]


def _unshardable(op: Any, rule: OpShardingRule) -> list[int]:
    """Returns `_moved_in_place`, or all factors if the value of the padding depends on its position."""
    arguments = op.regions[0].blocks[0].arguments
    if any(list(argument.uses) for argument in arguments):
        return list(range(rule.num_factors))
    return _moved_in_place(op, rule)


@partition_rule("tensor.pad", unshardable=_unshardable, allows_uneven=True, pure=True)
def pad(op: Any, blocks: Blocks) -> None:
    """Makes a pad local: along a sharded and padded dimension, each device pads its elements to the result shard."""
    windows = {one.dim: one for one in moving_windows(op, blocks)}
    for name in ("static_low", "static_high"):
        amounts = [0 if dim in windows else one for dim, one in enumerate(elements(op.attributes[name]))]
        op.attributes[name] = ir.DenseI64ArrayAttr.get(amounts)
    _pad_blocks(op, windows, blocks, lambda: scalar_of_region(op))


@partition_rule("tosa.pad", unshardable=_moved_in_place, allows_uneven=True, pure=True)
def tosa_pad(op: Any, blocks: Blocks) -> None:
    """Makes a pad local as `pad` does; the amounts of padding are an operand."""
    windows = {one.dim: one for one in moving_windows(op, blocks)}
    amounts = padding_of(op)
    if windows and amounts is not None:
        flat = [0 if dim in windows else one for dim, of in enumerate(amounts) for one in of]
        with ir.InsertionPoint(op), op.location:
            op.operands[1] = const_shape(op.operands[1].type, flat)
    _pad_blocks(op, windows, blocks, lambda: _tensor.ExtractOp(op.operands[2], [constant(0)]).result)


def const_shape(type_: Any, sizes: Sequence[int]) -> Any:
    """Returns a `tosa.const_shape`, built at the current insertion point."""
    index = ir.IndexType.get()
    numbers = [ir.IntegerAttr.get(index, size) for size in sizes]
    return _tosa.ConstShapeOp(
        type_, ir.DenseElementsAttr.get(numbers, ir.RankedTensorType.get([len(sizes)], index))
    ).result


def _pad_blocks(op: Any, windows: dict[int, Window], blocks: Blocks, filling: Callable[[], Any]) -> None:
    set_result_types(op, blocks)
    if not windows or blocks.rule is None:
        return
    shape, sizes = shape_of(blocks.result_types[0]), blocks.rule.factor_sizes
    with ir.InsertionPoint(op), op.location:
        bounds = []
        for dim, window in windows.items():
            start = multiply(blocks.device_index(blocks.factor_axes[window.factor]), constant(shape[dim]))
            bounds.append(Bounds.behind(dim, -window.offset, sizes[window.factor], start))
        scalar = filling()
    continue_with(op, 0, lambda: inside_bounds(op.results[0], bounds, scalar))
