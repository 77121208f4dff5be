# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of the ops of linalg that are not loop nests: softmax, layouts of tiles, and Winograd's transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.rules.builder import Dims, RuleBuilder, shape_of
from mlir_shard.rules.compound import without_ones
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("linalg.softmax")
def softmax(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """All dimensions go through but the one that is normalized, which has to be whole."""
    if not len(op.results):
        return None
    normalized = op.attributes["dimension"].value
    return (
        RuleBuilder.for_op(op)
        .add_pointwise(
            shape_of(op.results[0].type),
            lambda dim: FactorType.NEED_REPLICATION if dim == normalized else FactorType.PASS_THROUGH,
        )
        .build()
    )


@sharding_rule("linalg.pack", "tensor.pack")
def pack(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """A tiled dimension is made of its tiles and of what is in a tile. None on buffers."""
    return _tiled(op, plain=0, packed=1, options=options) if len(op.results) else None


@sharding_rule("linalg.unpack", "tensor.unpack")
def unpack(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """As `pack`, the other way round."""
    return _tiled(op, plain=1, packed=0, options=options) if len(op.results) else None


def _tiled(op: Any, plain: int, packed: int, options: RuleOptions) -> OpShardingRule:
    """Relates operand `plain` and operand `packed`; operand 1 is the destination, with the shape of the result.

    Where tiles do not fill a dimension, blocks of elements are no blocks of tiles, and neighbours exchange elements.
    """
    shapes = [shape_of(op.operands[number].type) for number in (0, 1)]
    rank = len(shapes[plain])
    tiled = list(op.attributes["inner_dims_pos"])
    order = list(op.attributes["outer_dims_perm"]) if "outer_dims_perm" in op.attributes else []
    builder = RuleBuilder.for_op(op)

    def add(plain_dim: int | None, packed_dim: int, size: int, type_: FactorType = FactorType.PASS_THROUGH) -> None:
        dims: list[int | None] = [None] * len(op.operands)
        dims[plain], dims[packed] = plain_dim, packed_dim
        blocked = options.conservative and type_ is FactorType.PERMUTATION
        builder.add_factor(dims, dims[1:2], size, type_, blocked=blocked)

    for dim, size in enumerate(shapes[plain]):
        outer = order.index(dim) if order else dim
        if dim not in tiled:
            add(dim, outer, size)
            continue
        inner = rank + tiled.index(dim)
        tiles, tile = shapes[packed][outer], shapes[packed][inner]
        if tiles * tile == size:
            add(dim, outer, tiles)
            add(dim, inner, tile)
        else:
            add(dim, outer, tiles, FactorType.PERMUTATION)
            add(None, inner, tile, FactorType.NEED_REPLICATION)
    return without_ones(builder.build())


@sharding_rule("linalg.winograd_filter_transform")
def winograd_filter(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """From (f, h, w, c) to (alpha_h, alpha_w, c, f): each filter and channel by itself, whole windows."""
    return _winograd(op, [(0, 3), (3, 2)], [])


@sharding_rule("linalg.winograd_input_transform")
def winograd_input(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """From (n, h, w, c) to (alpha_h, alpha_w, tile_h, tile_w, n, c): tiles overlap with their neighbours."""
    return _winograd(op, [(0, 4), (3, 5)], [(1, 2), (2, 3)])


@sharding_rule("linalg.winograd_output_transform")
def winograd_output(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """From (alpha_h, alpha_w, tile_h, tile_w, n, f) to (n, h, w, f): tiles go side by side, each of them whole."""
    return _winograd(op, [(4, 0), (5, 3)], [(2, 1), (3, 2)])


def _winograd(op: Any, common: Sequence[tuple[int, int]], tiles: Sequence[tuple[int, int]]) -> OpShardingRule | None:
    """Pairs of an input's and an output's dimension: the same in both, or tiles along a spatial dimension."""
    if not len(op.results):
        return None
    before, after = (shape_of(operand.type) for operand in op.operands)
    builder = RuleBuilder.for_op(op)
    for one, other in common:
        builder.add_factor([one, other], [other], before[one])
    for one, other in tiles:
        number = before[one] if op.name.endswith("output_transform") else after[other]
        in_tile, uneven = divmod(after[other], max(number, 1))
        side_by_side = op.name.endswith("output_transform") and not uneven
        type_ = FactorType.PASS_THROUGH if side_by_side else FactorType.PERMUTATION
        builder.add_factor([one, other], [other], number, type_)
        if side_by_side and in_tile > 1:
            builder.add_factor([None, other], [other], in_tile, FactorType.NEED_REPLICATION)
    return _with_whole_rest(builder, before, after, common, tiles)


def _with_whole_rest(
    builder: RuleBuilder,
    before: Sequence[int],
    after: Sequence[int],
    common: Sequence[tuple[int, int]],
    tiles: Sequence[tuple[int, int]],
) -> OpShardingRule:
    pairs = (*common, *tiles)
    rest: list[tuple[Dims, Dims, int]] = []
    rest += [([dim, None], [None], size) for dim, size in enumerate(before) if dim not in [one for one, _ in pairs]]
    rest += [([None, dim], [dim], size) for dim, size in enumerate(after) if dim not in [other for _, other in pairs]]
    for operand_dims, result_dims, size in rest:
        builder.add_factor(operand_dims, result_dims, size, FactorType.NEED_REPLICATION)
    return without_ones(builder.build())
