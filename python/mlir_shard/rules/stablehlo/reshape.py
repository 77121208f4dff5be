# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rule of a reshape: which factors of the two shapes are the same."""

from __future__ import annotations

import math
from typing import Any

from mlir_shard.rules.builder import RuleBuilder, rank_of, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import OpShardingRule


@sharding_rule("stablehlo.reshape")
def reshape(op: Any, options: RuleOptions) -> OpShardingRule | None:
    """Factors common to both shapes where the boundaries of their dimensions meet, else factors of one side.

    Both shapes are read as one sequence of factors, major to minor; None where a dimension has size 0.
    """
    operand, result = op.operands[0].type, op.results[0].type
    sizes = (shape_of(operand), shape_of(result))
    if 0 in sizes[0]:
        return None
    return _Reshape(RuleBuilder([rank_of(operand)], [rank_of(result)]), sizes).build()


class _Reshape:
    """Walks operand (side 0) and result (side 1) at once, always adding the next factor of the side that is behind."""

    def __init__(self, builder: RuleBuilder, sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        self._builder = builder
        self._sizes = sizes
        self._dims = [0, 0]
        # The product of all factors so far, and what is left of the current dimension; 0 before it is begun.
        self._done = [1, 1]
        self._left = [0, 0]

    def build(self) -> OpShardingRule:
        while self._dims[0] < len(self._sizes[0]) or self._dims[1] < len(self._sizes[1]):
            if not self._add_size_one():
                self._add_next()
        return self._builder.build()

    def _add_size_one(self) -> bool:
        for side in (0, 1):
            if not self._left[side] and self._dims[side] < len(self._sizes[side]) and self._size(side) == 1:
                self._add(side, 1)
                return True
        return False

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
        """The size of the factor that meets the other side, or that leaves `common` for the next factor."""
        left, done, ahead = self._left[behind], self._done[behind], self._done[1 - behind]
        if ahead % done == 0 and left % (ahead // done) == 0:
            return ahead // done
        return left // common if left > common else left

    def _size(self, side: int) -> int:
        dims = self._sizes[side]
        return dims[self._dims[side]] if self._dims[side] < len(dims) else 1

    def _add(self, side: int, size: int) -> None:
        dims: list[int | None] = [None, None]
        dims[side] = self._dims[side]
        self._builder.add_factor(dims[:1], dims[1:], size)
        self._advance(side, size)

    def _add_common(self, size: int) -> None:
        self._builder.add_factor([self._dims[0]], [self._dims[1]], size)
        for side in (0, 1):
            self._advance(side, size)

    def _advance(self, side: int, size: int) -> None:
        self._done[side] *= size
        self._left[side] = self._left[side] // size
        if self._left[side] <= 1:
            self._dims[side] += 1
            self._left[side] = 0
