# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of torch whose gradients torch-mlir does not lower to StableHLO, such as depthwise ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch

_aten = torch.ops.aten


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Crops the result of a transposed convolution whose output has different paddings, which torch-mlir reverses."""
    if not transposed or list(output_padding) == list(reversed(output_padding)):
        return NotImplemented
    none = [0] * len(padding)
    full = _aten.convolution(x, weight, bias, stride, none, dilation, True, none, groups)
    behind = [more - around for more, around in zip(output_padding, padding, strict=True)]
    if bias is not None and max(behind) > 0:
        return NotImplemented
    pairs = zip(reversed(padding), reversed(behind), strict=True)
    return _aten.constant_pad_nd(full, [one for around, more in pairs for one in (-around, more)], 0)


def _backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Computes the gradient of the input as a transposed convolution, and that of the weight at each place of it."""
    if transposed:
        return NotImplemented
    rest = [
        size - ((count - 1) * step - 2 * around + distance * (extent - 1) + 1)
        for size, count, extent, step, around, distance in zip(
            x.shape[2:], gradient.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
        )
    ]
    if groups == 1 and (not output_mask[0] or rest == rest[::-1]):
        return NotImplemented
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        of_input = _aten.convolution(gradient, weight, None, stride, padding, dilation, True, rest, groups)
    if groups == 1:
        options = (bias_sizes, stride, padding, dilation, False, output_padding, 1, [False, *output_mask[1:]])
        return of_input, *_aten.convolution_backward(gradient, x, weight, *options)[1:]
    if output_mask[1]:
        of_weight = _of_weight(gradient, x, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = gradient.sum([0, *range(2, gradient.ndim)])
    return of_input, of_weight, of_bias


def _of_weight(
    gradient: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Multiplies, for each place of the kernel, the gradient and the elements that the place reads."""
    of_groups = gradient.unflatten(1, (groups, -1)).unsqueeze(3).float()
    padded = _aten.constant_pad_nd(x, [around for around in reversed(padding) for _ in range(2)], 0)
    found = []
    for place in product(*map(range, weight.shape[2:])):
        read = padded
        for dim, (at, step, distance) in enumerate(zip(place, stride, dilation, strict=True), 2):
            first = at * distance
            read = _aten.slice(read, dim, first, first + (gradient.shape[dim] - 1) * step + 1, step)
        of_place = of_groups * read.unflatten(1, (groups, -1)).unsqueeze(2).float()
        found.append(of_place.sum([0, *range(4, of_place.ndim)]))
    return torch.stack(found, -1).reshape(weight.shape).to(weight.dtype)


CONVOLUTIONS: dict[Any, Callable[..., Any]] = {
    _aten.convolution.default: _convolution,
    _aten.convolution_backward.default: _backward,
}
