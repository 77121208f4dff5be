# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Upstream's tensor dialect: short ways to build its operations on static shapes. The dialect itself is the host's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard

_linalg, _tensor = host.dialect("linalg"), host.dialect("tensor")


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


def transpose(value: Any, permutation: Sequence[int]) -> Any:
    """A tensor whose dimension i is dimension `permutation[i]` of `value`."""
    if list(permutation) == list(range(len(permutation))):
        return value
    shape = [value.type.shape[dim] for dim in permutation]
    into = empty(shape, value.type.element_type)
    return _linalg.transpose(value, outs=[into], permutation=list(permutation)).operation.results[0]


def split_to_front(value: Any, dims: Sequence[int], counts: Sequence[int]) -> Any:
    """The tensor with each of some dimensions split in equal parts; new dimensions in front number the parts."""
    shape: list[int] = []
    numbering: dict[int, int] = {}
    for dim, size in enumerate(value.type.shape):
        if dim in dims:
            count = counts[dims.index(dim)]
            numbering[dim] = len(shape)
            shape.append(count)
            size //= count
        shape.append(size)
    front = [numbering[dim] for dim in dims]
    return transpose(reshape(value, shape), [*front, *(dim for dim in range(len(shape)) if dim not in front)])


def join_from_front(value: Any, dims: Sequence[int]) -> Any:
    """The tensor with its first dimensions, which number parts of each of `dims`, joined to these.

    dims: of the tensor without the dimensions in front.
    """
    permutation: list[int] = []
    shape: list[int] = []
    for dim, size in enumerate(list(value.type.shape)[len(dims) :]):
        if dim in dims:
            permutation.append(dims.index(dim))
            size *= value.type.shape[dims.index(dim)]
        permutation.append(len(dims) + dim)
        shape.append(size)
    return reshape(transpose(value, permutation), shape)
