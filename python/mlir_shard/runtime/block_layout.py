# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors cut into blocks along a dimension, as MPI wants them: one block after the other in memory.

All sizes are static. Where the blocks lie so already, nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard

_linalg, _tensor = host.dialect("linalg"), host.dialect("tensor")


def split(value: Any, dim: int, blocks: int) -> Any:
    """The `blocks` equal blocks of a tensor along `dim`, stacked along a new first dimension."""
    shape = list(value.type.shape)
    block = [*shape[:dim], shape[dim] // blocks, *shape[dim + 1 :]]
    if prod(shape[:dim]) == 1:
        return reshape(value, [blocks, *block])
    cut = reshape(value, [*shape[:dim], blocks, *block[dim:]])
    return _transpose(cut, [dim, *range(dim), *range(dim + 1, len(shape) + 1)])


def join(stacked: Any, dim: int) -> Any:
    """The concatenation along `dim` of blocks that are stacked along a first dimension."""
    blocks, *block = stacked.type.shape
    if prod(block[:dim]) != 1:
        stacked = _transpose(stacked, [*range(1, dim + 1), 0, *range(dim + 1, len(block) + 1)])
    return reshape(stacked, [*block[:dim], blocks * block[dim], *block[dim + 1 :]])


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """The elements of a tensor in the same order, in another shape; both shapes have dimensions."""
    if list(value.type.shape) == list(shape):
        return value
    flat = value
    if value.type.rank != 1:
        flat_type = shard.resized(value.type, [prod(value.type.shape)])
        flat = _tensor.CollapseShapeOp(flat_type, value, [list(range(value.type.rank))]).result
    if len(shape) == 1:
        return flat
    type_ = shard.resized(value.type, shape)
    return _tensor.ExpandShapeOp(type_, flat, [list(range(len(shape)))], [], list(shape)).result


def _transpose(value: Any, order: Sequence[int]) -> Any:
    shape = [value.type.shape[dim] for dim in order]
    initial = _tensor.empty(shape, value.type.element_type)
    return _linalg.transpose(value, outs=[initial], permutation=list(order)).operation.results[0]
