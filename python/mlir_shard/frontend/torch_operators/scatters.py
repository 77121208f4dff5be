# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that place or combine elements at indices, as the scatters that torch-mlir lowers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

_aten = torch.ops.aten
COMBINED = ("amax", "amin", "prod")
"""The reductions that stay an operator of torch: `scatter_reduce.two` that includes the former values."""


def _scatter_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    if include_self and reduce in COMBINED:
        return NotImplemented
    source = source[tuple(map(slice, index.shape))]
    counts = torch.zeros_like(x, dtype=torch.int64).scatter_add(dim, index, torch.ones_like(index))
    if not include_self:
        x = torch.where(counts > 0, torch.full_like(x, _neutral(reduce, x.dtype)), x)
    if reduce in COMBINED:
        return _aten.scatter_reduce.two(x, dim, index, source, reduce, include_self=True)
    total = x.scatter_add(dim, index, source)
    if reduce == "sum":
        return total
    counts = counts + 1 if include_self else torch.clamp_min(counts, 1)
    return total / counts if x.dtype.is_floating_point else torch.div(total, counts, rounding_mode="floor").to(x.dtype)


def _neutral(reduce: str, dtype: torch.dtype) -> float:
    if reduce not in ("amax", "amin"):
        return 1 if reduce == "prod" else 0
    if dtype.is_floating_point:
        return -torch.inf if reduce == "amax" else torch.inf
    return torch.iinfo(dtype).min if reduce == "amax" else torch.iinfo(dtype).max


def _scatter_with(x: torch.Tensor, dim: int, index: torch.Tensor, source: Any, *, reduce: str) -> torch.Tensor:
    if not isinstance(source, torch.Tensor):
        source = torch.full(index.shape, source, dtype=x.dtype)
    if reduce == "add":
        return x.scatter_add(dim, index, source)
    return _aten.scatter_reduce.two(x, dim, index, source, "prod", include_self=True)


def _index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    shape = [1] * source.dim()
    shape[dim] = -1
    places = index.view(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _put(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
    flat = torch.index_put(x.reshape(-1), (index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


def _as_strided_scatter(
    x: torch.Tensor,
    source: torch.Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> torch.Tensor:
    if not x.is_contiguous():
        return NotImplemented
    place = torch.full((), storage_offset or 0, dtype=torch.int64)
    for extent, distance in zip(size, stride, strict=True):
        place = place[..., None] + torch.arange(extent) * distance
    return _put(x, place, source)


_SUM, _MEAN, _MAX = range(3)
Bags = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def _embedding_bag(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Bags:
    """Combines rows of bags; returns also the bag of each index, the number of rows of each bag, and a placeholder."""
    if include_last_offset:
        offsets = offsets[:-1]
    count, total = offsets.shape[0], indices.shape[0]
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    is_row = indices != padding_idx
    neutral = _neutral("amax", rows.dtype) if mode == _MAX else 0
    rows = torch.where(is_row[:, None], rows, torch.full_like(rows, neutral))
    size = _equal_size(offsets, total)
    if size is not None:
        # Bags of equal sizes stay local along a sharded batch.
        bag = torch.arange(total) // size
        sizes = is_row.view(count, size).sum(1)
        by_bag = rows.view(count, size, -1)
        found = torch.amax(by_bag, 1) if mode == _MAX else by_bag.sum(1)
    else:
        bag = torch.searchsorted(offsets, torch.arange(total), right=True) - 1
        sizes = torch.zeros_like(offsets).index_add(0, bag, is_row.to(offsets.dtype))
        found = torch.full((count, rows.shape[1]), neutral, dtype=rows.dtype)
        if mode == _MAX:
            found = torch.index_reduce(found, 0, bag, rows, "amax")
        else:
            found = found.index_add(0, bag, rows)
    if mode == _MEAN:
        found = found / torch.clamp_min(sizes, 1)[:, None].to(rows.dtype)
    if mode == _MAX:
        found = torch.where((sizes > 0)[:, None], found, torch.zeros_like(found))
    return found, bag, sizes, torch.zeros_like(sizes)


def _equal_size(offsets: torch.Tensor, total: int) -> int | None:
    """Returns the size of all bags if torch has computed the offsets from the shape of a matrix of indices."""
    mode = get_proxy_mode()
    slot = None if mode is None else get_proxy_slot(offsets, mode.tracer, None)
    node = slot.proxy.node if slot is not None else None
    if node is None or node.target != _aten.arange.start_step:
        return None
    begin, end, *step = node.args
    size = step[0] if step else 1
    return size if begin == 0 and end == total == size * offsets.shape[0] else None


def _embedding_bag_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    bag: torch.Tensor,
    sizes: torch.Tensor,
    most: torch.Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: torch.Tensor | None,
    padding_idx: int = -1,
) -> torch.Tensor:
    if mode == _MAX or scale_grad_by_freq or sparse:
        return NotImplemented
    if mode == _MEAN:
        gradient = gradient / torch.clamp_min(sizes, 1)[:, None].to(gradient.dtype)
    rows = gradient[bag]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    rows = torch.where((indices != padding_idx)[:, None], rows, torch.zeros_like(rows))
    return torch.zeros((num_weights, rows.shape[1]), dtype=rows.dtype).index_add(0, indices, rows)


SCATTERS: dict[Any, Callable[..., Any]] = {
    _aten.scatter_reduce.two: _scatter_reduce,
    _aten.scatter.reduce: _scatter_with,
    _aten.scatter.value_reduce: _scatter_with,
    _aten.index_reduce.default: _index_reduce,
    _aten.put.default: _put,
    _aten.as_strided_scatter.default: _as_strided_scatter,
    _aten._embedding_bag.default: _embedding_bag,
    _aten._embedding_bag_forward_only.default: _embedding_bag,
    _aten._embedding_bag_backward.default: _embedding_bag_backward,
}
