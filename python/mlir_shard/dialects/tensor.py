# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Upstream's tensor dialect: short ways to build its operations on static shapes. The dialect itself is the host's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard

_tensor = host.dialect("tensor")


def empty(shape: Sequence[int], element_type: Any) -> Any:
    """A tensor whose elements are not said."""
    return _tensor.empty(list(shape), element_type)


def reshape(value: Any, shape: Sequence[int]) -> Any:
    """The elements of a tensor in the same order, in another shape; no elements are moved for that."""
    if list(value.type.shape) == list(shape):
        return value
    flat = value
    if value.type.rank != 1:
        flat_type = shard.resized(value.type, [prod(value.type.shape)])
        if value.type.rank:
            flat = _tensor.CollapseShapeOp(flat_type, value, [list(range(value.type.rank))]).result
        else:
            flat = _tensor.ExpandShapeOp(flat_type, value, [], [], [1]).result
    if len(shape) == 1:
        return flat
    type_ = shard.resized(value.type, shape)
    if not shape:
        return _tensor.CollapseShapeOp(type_, flat, []).result
    return _tensor.ExpandShapeOp(type_, flat, [list(range(len(shape)))], [], list(shape)).result


def extract_slice(value: Any, start: Sequence[int], shape: Sequence[int]) -> Any:
    """The elements of a tensor from `start` on that are as many as `shape` says."""
    type_, strides = shard.resized(value.type, shape), [1] * len(shape)
    return _tensor.ExtractSliceOp(type_, value, [], [], [], list(start), list(shape), strides).result


def insert_slice(value: Any, into: Any, start: Sequence[int]) -> Any:
    """The tensor `into` with the elements of `value` from `start` on."""
    shape = list(value.type.shape)
    return _tensor.InsertSliceOp(value, into, [], [], [], list(start), shape, [1] * len(shape)).result
