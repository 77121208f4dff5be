# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices into a tensor as indices into this device's block of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import stablehlo
from mlir_shard.rules.local_stablehlo import block_start
from mlir_shard.rules.partition import BlockedTensor, Blocks


@dataclass(frozen=True, slots=True)
class BlockIndices:
    """The indices of a gather or a scatter, at the current insertion point.

    `tensor` is what they point into; component i of an index vector, which lies along `vector_dim` of `indices`, is
    one along `dims[i]` of the tensor. Along those of them that are in `cut`, one element is meant, and the tensor is
    in blocks.
    """

    indices: Any
    vector_dim: int
    dims: Sequence[int]
    cut: Sequence[int]
    tensor: BlockedTensor
    blocks: Blocks

    @property
    def element_type(self) -> Any:
        """The type of the indices."""
        return self.indices.type.element_type

    def inside(self) -> Any:
        """The indices, moved to the ends of the tensor where they are beyond."""
        last = [self.blocks.operand_size(0, dim) - 1 for dim in self.dims]
        return stablehlo.build("clamp", self.indices.type, self._same(0), self.indices, self._limits(last))

    def local(self, indices: Any, *, with_mask: bool) -> tuple[Any, Any]:
        """The indices from the beginning of the block on, and a mask of the components that are in it, if asked."""
        first: list[Any] = []
        last: list[Any] = []
        scalar = stablehlo.tensor(self.element_type)
        for dim in self.dims:
            if dim not in self.cut:
                first.append(stablehlo.splat(scalar, 0))
                if with_mask:
                    last.append(stablehlo.splat(scalar, self._representable(self.tensor.type.shape[dim] - 1)))
                continue
            start = stablehlo.convert(block_start(self.tensor, dim, self.blocks), self.element_type)
            first.append(start)
            if with_mask:
                size = stablehlo.splat(scalar, self.tensor.block_shape[dim] - 1)
                last.append(stablehlo.build("add", scalar, start, size))
        low = self._spread(first)
        high = self._spread(last) if with_mask else None
        moved = stablehlo.build("subtract", indices.type, indices, low)
        if not with_mask:
            return moved, None
        above, below = stablehlo.compare("GE", indices, low), stablehlo.compare("LE", indices, high)
        return moved, stablehlo.build("and", above.type, above, below)

    def _limits(self, values: Sequence[int]) -> Any:
        values = list(map(self._representable, values))
        return self._same(values[0]) if len(values) < 2 else self._numbers(values)

    def _representable(self, value: int) -> int:
        """The value, or the largest one of the type of the indices where that is smaller: no index is beyond it."""
        element = self.element_type
        return min(value, 2 ** (element.width - (0 if element.is_unsigned else 1)) - 1)

    def _same(self, value: int) -> Any:
        return stablehlo.splat(self.indices.type, value)

    def _numbers(self, values: Sequence[int]) -> Any:
        vector = stablehlo.numbers(values, self.element_type)
        return stablehlo.broadcast(vector, self.indices.type.shape, [self.vector_dim])

    def _spread(self, scalars: Sequence[Any]) -> Any:
        """A tensor of the shape of the indices, from a scalar for each component."""
        shape = self.indices.type.shape
        if self.vector_dim >= len(shape) or shape[self.vector_dim] == 1:
            return stablehlo.broadcast(scalars[0], shape)
        vector = stablehlo.concatenate([stablehlo.reshape(one, [1]) for one in scalars], 0)
        return stablehlo.broadcast(vector, shape, [self.vector_dim])


def has_first_blocks(tensor: BlockedTensor, dims: Sequence[int], blocks: Blocks) -> Any:
    """A scalar mask of whether this device has the first block along each of some dimensions."""
    mask = None
    for dim in dims:
        start = block_start(tensor, dim, blocks)
        is_first = stablehlo.compare("EQ", start, stablehlo.splat(start.type, 0))
        mask = is_first if mask is None else stablehlo.build("and", is_first.type, mask, is_first)
    return mask
