# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of StableHLO's ops that rearrange elements or make them: reshape, broadcast, transpose, bit casts, iota.

The rule of a reshape maps the factors that the two shapes have in common. Also partition rules of ops with sizes or
positions in attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.resharding.operator.reshape import reshape_groups
from mlir_shard.rules.builder import RuleBuilder, pointwise_but, shape_of, transposed
from mlir_shard.rules.partition import (
    BlockedTensor,
    Blocks,
    continue_with,
    drop_shardings,
    partition_rule,
    set_result_types,
)
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@sharding_rule("stablehlo.reshape")
def reshape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Returns the rule of a reshape: common factors if the boundaries of dimensions meet, else factors of one side.

    Both shapes are read as one sequence of factors, major to minor. Returns None if a dimension has size 0. To compute
    the op, dimensions of size 1 of both sides that meet are one factor, and the operand is replicated along any other.
    """
    operand, result = op.operands[0].type, op.results[0].type
    sizes = (shape_of(operand), shape_of(result))
    if 0 in sizes[0]:
        return None
    return _Reshape(sizes, computing=options.computing).build()


def reshape_with_minor(op: Any, side: int, dim: int) -> OpShardingRule | None:
    """Returns a rule by which shardings propagate through a reshape as if a dimension was minor to those it meets.

    Axes then shard the other dimensions of its group first, although elements move between devices for it. `side` is 0
    for a dimension of the operand and 1 for one of the result. Returns None for a dimension without others in its
    group, and for tensors without elements.
    """
    sizes = (shape_of(op.operands[0].type), shape_of(op.results[0].type))
    if 0 in sizes[0]:
        return None
    groups = ((group.operand_dims, group.result_dims)[side] for group in reshape_groups(*sizes))
    dims = next(dims for dims in groups if dim in dims)
    if len(dims) == 1:
        return None
    order = list(range(len(sizes[side])))
    order.insert(dims.stop - 1, order.pop(dim))
    return _Reshape(sizes, computing=False, order=(side, order)).build()


class _Reshape:
    """A walk over operand (side 0) and result (side 1) that always adds the next factor of the side that is behind.

    `order` is a side and the order in which its dimensions are read.
    """

    def __init__(
        self,
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
        *,
        computing: bool,
        order: tuple[int, Sequence[int]] | None = None,
    ) -> None:
        self._builder = RuleBuilder([len(sizes[0])], [len(sizes[1])])
        self._computing = computing
        self._orders: list[Sequence[int]] = [range(len(dims)) for dims in sizes]
        if order is not None:
            self._orders[order[0]] = order[1]
        self._sizes = [[dims[at] for at in of] for dims, of in zip(sizes, self._orders, strict=True)]
        self._dims = [0, 0]
        # The product of all factors so far, and the rest of the current dimension; 0 before it is begun.
        self._done = [1, 1]
        self._left = [0, 0]

    def build(self) -> OpShardingRule:
        while self._dims[0] < len(self._sizes[0]) or self._dims[1] < len(self._sizes[1]):
            if not self._add_size_one():
                self._add_next()
        return self._builder.build()

    def _add_size_one(self) -> bool:
        sides = [side for side in (0, 1) if self._is_size_one(side)]
        if not sides:
            return False
        if self._computing and len(sides) == 2:
            self._add_common(1)
        elif self._computing and sides == [0]:
            self._add(0, 1, FactorType.NEED_REPLICATION)
        else:
            self._add(sides[0], 1)
        return True

    def _is_size_one(self, side: int) -> bool:
        """Returns whether the next dimension of a side has size 1."""
        return not self._left[side] and self._dims[side] < len(self._sizes[side]) and self._size(side) == 1

    def _add_next(self) -> None:
        for side in (0, 1):
            if not self._left[side]:
                self._left[side] = self._size(side)
        common = math.gcd(self._left[0], self._left[1])
        if self._done[0] != self._done[1]:
            behind = 0 if self._done[0] < self._done[1] else 1
            self._add(behind, self._catch_up(behind, common))
        elif common > 1:
            self._add_common(common)
        else:
            for side in (0, 1):
                self._add(side, self._left[side])

    def _catch_up(self, behind: int, common: int) -> int:
        """Returns the size of the factor that meets the other side, or that leaves `common` for the next factor."""
        left, done, ahead = self._left[behind], self._done[behind], self._done[1 - behind]
        if ahead % done == 0 and left % (ahead // done) == 0:
            return ahead // done
        return left // common if left > common else left

    def _size(self, side: int) -> int:
        dims = self._sizes[side]
        return dims[self._dims[side]] if self._dims[side] < len(dims) else 1

    def _dim(self, side: int) -> int:
        return self._orders[side][self._dims[side]]

    def _add(self, side: int, size: int, type_: FactorType = FactorType.PASS_THROUGH) -> None:
        dims: list[int | None] = [None, None]
        dims[side] = self._dim(side)
        self._builder.add_factor(dims[:1], dims[1:], size, type_)
        self._advance(side, size)

    def _add_common(self, size: int) -> None:
        self._builder.add_factor([self._dim(0)], [self._dim(1)], size)
        for side in (0, 1):
            self._advance(side, size)

    def _advance(self, side: int, size: int) -> None:
        self._done[side] *= size
        self._left[side] = self._left[side] // size
        if self._left[side] <= 1:
            self._dims[side] += 1
            self._left[side] = 0


@sharding_rule("stablehlo.broadcast_in_dim", any_sizes=True)
def broadcast_in_dim(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns a rule with a factor for each result dimension, mapped to the operand unless that is stretched along it.

    To compute the op, stretched dimensions of the operand must be replicated.
    """
    stretched = FactorType.NEED_REPLICATION if options.computing else FactorType.PASS_THROUGH
    shape = shape_of(op.operands[0].type)
    operand_dim_of = {result_dim: dim for dim, result_dim in enumerate(elements(op.attributes["broadcast_dimensions"]))}
    builder = RuleBuilder.for_op(op)
    for result_dim, size in enumerate(shape_of(op.results[0].type)):
        operand_dim = operand_dim_of.get(result_dim)
        if operand_dim is not None and shape[operand_dim] != size:
            builder.add_factor([operand_dim], [None], 1, stretched)
            operand_dim = None
        builder.add_factor([operand_dim], [result_dim], size)
    return builder.build()


@sharding_rule("stablehlo.transpose", any_sizes=True)
def transpose(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a transpose: a factor for each result dimension, in their order."""
    return transposed(op, elements(op.attributes["permutation"]))


@sharding_rule("stablehlo.reverse", any_sizes=True)
def reverse(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a reverse: devices exchange their shards along reversed dimensions."""
    return pointwise_but(op, set(elements(op.attributes["dimensions"])), FactorType.PERMUTATION)


@sharding_rule("stablehlo.bitcast_convert")
def bitcast_convert(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a bit cast: pass-through, except the dimension of the parts of elements that one side has."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    builder = RuleBuilder.for_op(op).add_pointwise(min(before, after, key=len))
    if len(before) < len(after):
        builder.add_factor([None], [len(before)], after[-1], FactorType.NEED_REPLICATION)
    elif len(before) > len(after):
        builder.add_factor([len(after)], [None], before[-1], FactorType.NEED_REPLICATION)
    return builder.build()


def block_start(tensor: BlockedTensor, dim: int, blocks: Blocks) -> Any:
    """Returns the start of this device's shard of a dimension, as a scalar of i64 at the current insertion point."""
    size = tensor.block_shape[dim]
    return stablehlo.reshape(blocks.entry(tensor.axes[dim], lambda number: number * size, None), ())


@partition_rule("stablehlo.iota", allows_uneven=True, pure=True)
def iota(op: Any, blocks: Blocks) -> None:
    """Makes an iota local: adds the start of the shard."""
    blocks.check_known()
    set_result_types(op, blocks)
    drop_shardings(op)
    result, dim = op.results[0], op.attributes["iota_dimension"].value
    if blocks.results[0].counts[dim] == 1:
        return

    def shifted() -> Any:
        start = stablehlo.convert(block_start(blocks.results[0], dim, blocks), result.type.element_type)
        return stablehlo.build("add", result.type, result, stablehlo.broadcast(start, result.type.shape))

    continue_with(op, 0, shifted)


@partition_rule("stablehlo.broadcast", makes_elements=True, allows_uneven=True, pure=True)
def broadcast(op: Any, blocks: Blocks) -> None:
    """Makes a broadcast local: the leading sizes are those of the shard."""
    set_result_types(op, blocks)
    count = len(op.attributes["broadcast_sizes"])
    op.attributes["broadcast_sizes"] = stablehlo.sizes(list(op.results[0].type.shape)[:count])


@partition_rule("stablehlo.rng_bit_generator", makes_elements=True, allows_uneven=True, pure=True)
def rng_bit_generator(op: Any, blocks: Blocks) -> bool:
    """Leaves the result entire, to be sliced: every device draws all bits from the same state; they do not change."""
    return False
