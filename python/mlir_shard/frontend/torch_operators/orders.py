# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that compare elements along a dimension: medians, modes, places of maxima; and cumulative ones."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import torch

_aten = torch.ops.aten
Pair = tuple[torch.Tensor, torch.Tensor]


def _places(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Returns the place of each element along a dimension, as a tensor that broadcasts to the shape of `x`."""
    shape = [1] * x.dim()
    shape[dim] = -1
    return torch.arange(x.shape[dim], device=x.device).view(shape)


def _extreme(x: torch.Tensor, dim: int, keepdim: bool, *, is_most: bool) -> Pair:
    """Returns the extreme values along a dimension and their first places; NaN is more extreme than all numbers."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    value = (torch.amax if is_most else torch.amin)(x, dim, keepdim=True)
    places = _places(x, dim)
    is_it = (x == value) | (x != x)
    place = torch.amin(torch.where(is_it, places, x.shape[dim]), dim, keepdim=True)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _max(x: torch.Tensor, dim: int, keepdim: bool = False) -> Pair:
    return _extreme(x, dim, keepdim, is_most=True) if x.dtype.is_floating_point else NotImplemented


def _min(x: torch.Tensor, dim: int, keepdim: bool = False) -> Pair:
    return _extreme(x, dim, keepdim, is_most=False) if x.dtype.is_floating_point else NotImplemented


def _place_of_extreme(x: torch.Tensor, dim: int | None, keepdim: bool, *, is_most: bool) -> torch.Tensor:
    if not x.dtype.is_floating_point:
        return NotImplemented
    if dim is None:
        found = _extreme(x.reshape(-1), 0, False, is_most=is_most)[1]
        return found.reshape([1] * x.dim()) if keepdim else found
    return _extreme(x, dim, keepdim, is_most=is_most)[1]


def _argmax(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _place_of_extreme(x, dim, keepdim, is_most=True)


def _argmin(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    return _place_of_extreme(x, dim, keepdim, is_most=False)


def _sort(x: torch.Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Pair:
    # The lowering is stable for StableHLO, whose sorts are always so.
    return _aten.sort.default(x, dim, descending)


def _at(sorted_: Pair, dim: int, place: torch.Tensor, keepdim: bool) -> Pair:
    """Returns the values and their former places at one place of each row; `place` has size 1 along `dim`."""
    values, places = (one.gather(dim, place) for one in sorted_)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _median(x: torch.Tensor, dim: int = -1, keepdim: bool = False, *, ignores_nan: bool = False) -> Pair:
    """Selects the lower median; if there are NaNs, the first of them, or else ignores them."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    size = x.shape[dim]
    # NaNs are the last after the sort.
    numbers = size - (x != x).sum(dim, keepdim=True)
    if ignores_nan:
        place = torch.clamp_min(torch.div(numbers - 1, 2, rounding_mode="floor"), 0)
    else:
        place = torch.where(numbers == size, (size - 1) // 2, numbers)
    return _at(torch.sort(x, dim), dim, place, keepdim)


def _nanmedian(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    return _median(x, dim, keepdim, ignores_nan=True)


def _median_of_all(x: torch.Tensor) -> torch.Tensor:
    return _median(x.reshape(-1), 0)[0]


def _nanmedian_of_all(x: torch.Tensor) -> torch.Tensor:
    return _nanmedian(x.reshape(-1), 0)[0]


def _kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = (one.narrow(dim, k - 1, 1) for one in torch.sort(x, dim))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """Selects the smallest of the most frequent values, and its last place."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, origins = torch.sort(x, dim)
    places = _places(values, dim)
    before = torch.where(places == 0, values, values.roll(1, dim))
    begins = torch.where((places == 0) | (values != before), places, 0)
    length = places - torch.cummax(begins, dim)[0]
    return _at((values, origins), dim, torch.argmax(length, dim, keepdim=True), keepdim)


def _shifted(x: torch.Tensor, dim: int, distance: int, value: float) -> torch.Tensor:
    """Returns the elements `distance` places before each element, and `value` before the first."""
    amounts = [0, 0] * (x.dim() - 1 - dim % x.dim()) + [distance, -distance]
    return torch.constant_pad_nd(x, amounts, value)


def _scan(x: torch.Tensor, dim: int, combine: Callable[..., torch.Tensor], neutral: float) -> torch.Tensor:
    """Combines each element with all elements before it in logarithmically many steps."""
    distance = 1
    while x.dim() and distance < x.shape[dim]:
        x, distance = combine(_shifted(x, dim, distance, neutral), x), 2 * distance
    return x


def _cumulative_extreme(x: torch.Tensor, dim: int, *, is_most: bool) -> Pair:
    """Returns the extreme values up to each element and their last places; NaN is more extreme than all numbers."""
    if not x.dim():
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, places = x, _places(x, dim).expand(x.shape)
    distance = 1
    while distance < x.shape[dim]:
        # Before the first element is none: the place -1 is never selected.
        earlier, earlier_places = _shifted(values, dim, distance, 0), _shifted(places, dim, distance, -1)
        is_better = values >= earlier if is_most else values <= earlier
        is_kept = (values != values) | is_better | (earlier_places < 0)
        values, places = torch.where(is_kept, values, earlier), torch.where(is_kept, places, earlier_places)
        distance *= 2
    return values, places


def _cummax(x: torch.Tensor, dim: int) -> Pair:
    return _cumulative_extreme(x, dim, is_most=True)


def _cummin(x: torch.Tensor, dim: int) -> Pair:
    return _cumulative_extreme(x, dim, is_most=False)


def _summed_type(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Returns elements in the type of their sums and products."""
    if dtype is None:
        dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else torch.int64
    return x.to(dtype)


def _cumprod(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _scan(_summed_type(x, dtype), dim, torch.mul, 1)


def _cumsum(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _scan(_summed_type(x, dtype), dim, torch.add, 0)


def _logcumsumexp(x: torch.Tensor, dim: int) -> torch.Tensor:
    return _scan(x, dim, torch.logaddexp, -inf) if x.dtype.is_floating_point else NotImplemented


ORDERS: dict[Any, Callable[..., Any]] = {
    _aten.max.dim: _max,
    _aten.min.dim: _min,
    _aten.argmax.default: _argmax,
    _aten.argmin.default: _argmin,
    _aten.sort.stable: _sort,
    _aten.median.dim: _median,
    _aten.median.default: _median_of_all,
    _aten.nanmedian.dim: _nanmedian,
    _aten.nanmedian.default: _nanmedian_of_all,
    _aten.kthvalue.default: _kthvalue,
    _aten.mode.default: _mode,
    _aten.cummax.default: _cummax,
    _aten.cummin.default: _cummin,
    _aten.cumprod.default: _cumprod,
}
SCANS: dict[Any, Callable[..., Any]] = {
    _aten.cumsum.default: _cumsum,
    _aten.logcumsumexp.default: _logcumsumexp,
}
"""Cumulative operators that torch-mlir lowers to operations of its own, except for StableHLO."""
