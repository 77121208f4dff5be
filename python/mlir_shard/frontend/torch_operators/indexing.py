# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that select or place elements, or compare all pairs, as slices and elementwise operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import Any

import torch
from torch.nn._reduction import get_enum, legacy_get_enum

_aten = torch.ops.aten


def _gather(values: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> torch.Tensor:
    if not _is_one_index(values, dim, index):
        return NotImplemented
    chosen = torch.where(_positions(values, dim) == index, values, torch.zeros_like(values))
    return chosen.sum(dim, keepdim=True, dtype=values.dtype)


def _scatter(values: torch.Tensor, dim: int, index: torch.Tensor, value: complex) -> torch.Tensor:
    if not _is_one_index(values, dim, index):
        return NotImplemented
    return torch.where(_positions(values, dim) == index, torch.full_like(values, value), values)


def _is_one_index(values: torch.Tensor, dim: int, index: torch.Tensor) -> bool:
    """Returns whether `index` has a single index along `dim` for each position along the other dimensions."""
    wanted = list(values.shape)
    if wanted:
        wanted[dim] = 1
    return bool(wanted) and list(index.shape) == wanted


def _positions(values: torch.Tensor, dim: int) -> torch.Tensor:
    shape = [1] * values.dim()
    shape[dim] = -1
    return torch.arange(values.shape[dim], device=values.device).view(shape)


def _as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> torch.Tensor:
    is_reshape = list(stride) == list(torch.empty(size, device="meta").stride()) and prod(size) == x.numel()
    return x.reshape(size) if is_reshape and not storage_offset and x.is_contiguous() else NotImplemented


def _pad(x: torch.Tensor, pad: Sequence[int], value: complex = 0) -> torch.Tensor:
    """Slices where the amount is negative, and pads the slice."""
    if min(pad, default=0) >= 0:
        return NotImplemented
    for place in range(len(pad) // 2):
        dim = x.dim() - 1 - place
        low, high = (max(0, -amount) for amount in pad[2 * place : 2 * place + 2])
        x = _aten.slice(x, dim, low, x.shape[dim] - high)
    return _aten.constant_pad_nd(x, [max(0, amount) for amount in pad], value)


def _slice_scatter(
    x: torch.Tensor,
    source: torch.Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> torch.Tensor:
    """Gives the end, which torch-mlir requires."""
    return _aten.slice_scatter(x, source, dim, start or 0, x.shape[dim], step) if end is None else NotImplemented


def multilabel_margin_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """Compares the targets before the first -1 with all other classes; the arguments are torch's."""
    x, kind = input, get_enum(reduction)
    if size_average is not None or reduce is not None:
        kind = legacy_get_enum(size_average, reduce, emit_warning=False)
    rows, targets = torch.atleast_2d(x), torch.atleast_2d(target)
    count = rows.shape[1]
    places = torch.arange(count)
    end = torch.amin(torch.where(targets == -1, places, count), -1, keepdim=True)
    is_of_target = (targets[..., None] == places) & (places < end)[..., None]
    is_target = is_of_target.any(1)
    values = torch.where(is_of_target, rows[:, None, :], 0).sum(-1)
    margins = torch.clamp_min(1 - values[..., None] + rows[:, None, :], 0)
    losses = torch.where((places < end)[..., None] & ~is_target[:, None, :], margins, 0).sum((1, 2)) / count
    return {0: losses.reshape(x.shape[:-1]), 1: losses.mean(), 2: losses.sum()}[kind]


def _roll(x: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    return x.reshape(-1).roll(shifts, 0).reshape(x.shape) if not dims else NotImplemented


def _diagonal(x: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """Sums columns in which only the element on the diagonal is not zero."""
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    is_on = torch.arange(rows)[:, None] + offset == torch.arange(columns)
    kept = torch.where(is_on, x, torch.zeros_like(x))
    found = kept.any(-2) if x.dtype == torch.bool else kept.sum(-2, dtype=x.dtype)
    return found.narrow(-1, max(offset, 0), length)


def _diagonal_scatter(
    x: torch.Tensor, source: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> torch.Tensor:
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    first = max(offset, 0)
    row = torch.constant_pad_nd(source, [first, columns - first - source.shape[-1]])
    is_on = torch.arange(rows)[:, None] + offset == torch.arange(columns)
    return torch.where(is_on, row[..., None, :], x).movedim((-2, -1), (dim1, dim2))


def _unfold(x: torch.Tensor, dim: int, size: int, step: int) -> torch.Tensor:
    """Joins slices: one for each window, or for each place in a window if these are fewer."""
    if not x.dim():
        return NotImplemented
    dim %= x.dim()
    count = (x.shape[dim] - size) // step + 1
    if count < size:
        windows = [x.narrow(dim, index * step, size).movedim(dim, -1) for index in range(count)]
        return torch.stack(windows, dim)
    slices = [_aten.slice(x, dim, place, place + step * (count - 1) + 1, step) for place in range(size)]
    return torch.stack(slices, -1)


def _block_diagonal(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    matrices = [one.reshape(1, -1) if one.dim() < 2 else one for one in tensors]
    width = sum(one.shape[1] for one in matrices)
    before, rows = 0, []
    for one in matrices:
        rows.append(torch.constant_pad_nd(one, [before, width - before - one.shape[1]]))
        before += one.shape[1]
    return torch.cat(rows)


def _searchsorted(
    sequence: torch.Tensor,
    values: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """Counts the elements of each row that come before a value; NaN comes after all numbers."""
    if sorter is not None:
        sequence = sequence.gather(-1, sorter)
    row = sequence if sequence.dim() == 1 else sequence[..., None, :]
    column = values[..., None]
    is_behind = row > column if right or side == "right" else row >= column
    found = torch.logical_not(is_behind).sum(-1)
    return found.to(torch.int32) if out_int32 else found


def _searchsorted_of_scalar(sequence: torch.Tensor, value: complex, **options: Any) -> torch.Tensor:
    return _searchsorted(sequence, torch.full((1,), value, dtype=sequence.dtype), **options).reshape(())


def _histogram(x: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    x = x.reshape(-1)
    if min == max:
        low, high = torch.amin(x), torch.amax(x)
        is_point = low == high
        low, high = torch.where(is_point, low - 1, low), torch.where(is_point, high + 1, high)
    else:
        low, high = (torch.full((), one, dtype=x.dtype) for one in (min, max))
    place = ((x - low) * bins / (high - low)).to(torch.int64)
    place = torch.clamp_max(place, bins - 1)
    is_in = (x >= low) & (x <= high)
    is_of_bin = (place[:, None] == torch.arange(bins)) & is_in[:, None]
    return is_of_bin.sum(0).to(x.dtype)


def _norms(difference: torch.Tensor, p: float) -> torch.Tensor:
    """Returns the norms along the last dimension."""
    away = difference.abs()
    if p == 0:
        return (away != 0).sum(-1).to(away.dtype)
    if p == 1:
        return away.sum(-1)
    if p == 2:
        return torch.sqrt((away * away).sum(-1))
    return torch.amax(away, -1) if p == inf else torch.pow(torch.pow(away, p).sum(-1), 1 / p)


def _distances(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None = None) -> torch.Tensor:
    return _norms(x[..., :, None, :] - y[..., None, :, :], p)


def _distances_of_pairs(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return _norms(x[first] - x[second], p)


def _distance(x: torch.Tensor, y: torch.Tensor, p: float = 2) -> torch.Tensor:
    return _norms((x - y).reshape(-1), p)


INDEXING: dict[Any, Callable[..., Any]] = {
    # A loss reads one element of each row this way, and its gradient writes one. As elementwise ops these are local
    # along all sharded dimensions in every dialect; torch-mlir lowers them to loads, which are not local, or to its own
    # ops.
    _aten.gather.default: _gather,
    _aten.scatter.value: _scatter,
    # For linalg and tosa, torch-mlir slices at the wrong place.
    _aten.constant_pad_nd.default: _pad,
    # torch decomposes some reshapes to views of memory, which are imported as a gather of all elements.
    _aten.as_strided.default: _as_strided,
    _aten.slice_scatter.default: _slice_scatter,
    _aten.roll.default: _roll,
    _aten.diagonal.default: _diagonal,
    _aten.diagonal_copy.default: _diagonal,
    _aten.diagonal_scatter.default: _diagonal_scatter,
    _aten.unfold.default: _unfold,
    _aten.unfold_copy.default: _unfold,
    _aten.block_diag.default: _block_diagonal,
    _aten.searchsorted.Tensor: _searchsorted,
    _aten.searchsorted.Scalar: _searchsorted_of_scalar,
    _aten.histc.default: _histogram,
    _aten._cdist_forward.default: _distances,
    _aten._pdist_forward.default: _distances_of_pairs,
    _aten.dist.default: _distance,
}
