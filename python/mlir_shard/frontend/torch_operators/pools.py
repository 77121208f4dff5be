# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools of torch whose windows torch-mlir cannot lower, or lowers wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

_aten = torch.ops.aten
_MAX_POOLS = {2: _aten.max_pool2d_with_indices, 3: _aten.max_pool3d_with_indices}
_AVERAGE_POOLS = {1: _aten.avg_pool1d, 2: _aten.avg_pool2d, 3: _aten.avg_pool3d}


def _of_each_dim(given: Sequence[int], rank: int) -> list[int]:
    return list(given) * rank if len(given) == 1 else list(given)


def _with_ceil_mode(size: int, window: int, stride: int, padding: int) -> int:
    """Returns the number of windows, of which the last begins inside of the tensor or the padding before it."""
    count = -(-(size + 2 * padding - window) // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def _padded(x: torch.Tensor, before: Sequence[int], behind: Sequence[int], value: float) -> torch.Tensor:
    amounts = [one for pair in zip(reversed(before), reversed(behind), strict=True) for one in pair]
    return _aten.constant_pad_nd(x, amounts, value)


def _max_pool(
    x: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pads for `ceil_mode`, whose last windows may reach beyond the padding."""
    if not ceil_mode and stride:
        return NotImplemented
    rank = len(kernel_size)
    strides = _of_each_dim(stride or kernel_size, rank)
    before, steps = _of_each_dim(padding, rank), _of_each_dim(dilation, rank)
    if not ceil_mode:
        # torch-mlir takes strides that are not given for 1.
        return _MAX_POOLS[rank](x, kernel_size, strides, before, steps)
    sizes = x.shape[-rank:]
    behind = []
    for size, extent, step, around, distance in zip(sizes, kernel_size, strides, before, steps, strict=True):
        window = distance * (extent - 1) + 1
        count = _with_ceil_mode(size, window, step, around)
        behind.append(max(around, (count - 1) * step + window - size - around))
    least = -torch.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    padded = _padded(x, before, behind, least)
    values, places = _MAX_POOLS[rank](padded, kernel_size, strides, [0] * rank, steps)
    # Places count in the padded tensor.
    found, distance = torch.zeros_like(places), 1
    for size, padded_size, around in zip(reversed(sizes), reversed(padded.shape), reversed(before), strict=False):
        found = found + (places % padded_size - around) * distance
        places, distance = places // padded_size, distance * size
    return values, found


def _average_pool(
    x: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    rank: int,
) -> torch.Tensor:
    """Sums windows of a padded tensor and divides by the number of elements that torch counts in each."""
    if not ceil_mode and divisor_override is None:
        return NotImplemented
    extents, before = _of_each_dim(kernel_size, rank), _of_each_dim(padding, rank)
    strides = _of_each_dim(stride or kernel_size, rank)
    sizes = x.shape[-rank:]
    counts, behind = [], []
    for size, window, step, around in zip(sizes, extents, strides, before, strict=True):
        padded_size = size + 2 * around
        count = _with_ceil_mode(size, window, step, around) if ceil_mode else (padded_size - window) // step + 1
        behind.append(max(0, (count - 1) * step + window - size - around))
        begin = torch.arange(count, device=x.device) * step - around
        end = torch.clamp_max(begin + window, size + around)
        if not count_include_pad:
            begin, end = torch.clamp_min(begin, 0), torch.clamp_max(end, size)
        counts.append(end - begin)
    padded = _padded(x, before, behind, 0)
    sums = _AVERAGE_POOLS[rank](padded, extents, strides, [0] * rank) * prod(extents)
    if divisor_override is not None:
        return sums / divisor_override
    divisor = counts[0]
    for one in counts[1:]:
        divisor = divisor[..., None] * one
    return sums / divisor.to(x.dtype)


def _average_pool1d(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _average_pool(x, *args, **kwargs, rank=1)


def _average_pool2d(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _average_pool(x, *args, **kwargs, rank=2)


def _average_pool3d(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return _average_pool(x, *args, **kwargs, rank=3)


def _windows(size: int, count: int) -> list[tuple[int, int]]:
    """Returns the beginning and the length of each window of an adaptive pool along one dimension."""
    ranges = [(index * size // count, -(-(index + 1) * size // count)) for index in range(count)]
    return [(begin, end - begin) for begin, end in ranges]


def _adaptive_average(x: torch.Tensor, output_size: Sequence[int]) -> torch.Tensor:
    """Averages along one dimension after the other: all windows at a place of a dimension have the same length."""
    for dim, count in enumerate(output_size, x.dim() - len(output_size)):
        if count != x.shape[dim]:
            windows = _windows(x.shape[dim], count)
            x = torch.cat([x.narrow(dim, *one).mean(dim, keepdim=True) for one in windows], dim)
    return x


def _adaptive_max(x: torch.Tensor, output_size: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Selects along one dimension after the other, from the last, so that places are the first in row-major order."""
    first = x.dim() - len(output_size)
    places = torch.zeros_like(x, dtype=torch.int64)
    distance = 1
    for dim, count in reversed(list(enumerate(output_size, first))):
        size = x.shape[dim]
        values, found = [], []
        for begin, length in _windows(size, count):
            value, place = torch.max(x.narrow(dim, begin, length), dim, keepdim=True)
            values.append(value)
            found.append(places.narrow(dim, begin, length).gather(dim, place) + (place + begin) * distance)
        x, places = torch.cat(values, dim), torch.cat(found, dim)
        distance *= size
    return x, places


POOLS: dict[Any, Callable[..., Any]] = {
    # torch-mlir ignores `ceil_mode` for StableHLO, and divisors of volumes.
    _aten.max_pool2d_with_indices.default: _max_pool,
    _aten.max_pool3d_with_indices.default: _max_pool,
    _aten.avg_pool1d.default: _average_pool1d,
    _aten.avg_pool2d.default: _average_pool2d,
    _aten.avg_pool3d.default: _average_pool3d,
    _aten._adaptive_avg_pool3d.default: _adaptive_average,
    _aten.adaptive_avg_pool3d.default: _adaptive_average,
    _aten.adaptive_max_pool2d.default: _adaptive_max,
    _aten.adaptive_max_pool3d.default: _adaptive_max,
}
