# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that are decomposed or corrected before torch-mlir lowers them, and arguments for them."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, prod
from typing import Any

import torch
from torch.nn import functional as F

EDGES = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, inf, -inf, nan, 1e-30, 1e30, -7.3, 3.7])


def arguments(batch: int) -> dict[str, torch.Tensor]:
    """Returns the arguments of the operators, whose first dimension is the batch unless the name begins with `of_`."""
    random = torch.Generator().manual_seed(batch)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random)

    def integers(low: int, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=random)

    return {
        "x": normal(batch, 3, 8),
        "y": normal(batch, 3, 8),
        "edges": EDGES.repeat(batch, 1),
        "others": EDGES.roll(3).repeat(batch, 1),
        "image": normal(batch, 4, 7, 8),
        "volume": normal(batch, 2, 5, 6, 7),
        "series": normal(batch, 4, 9),
        "ints": integers(-12, 12, batch, 6),
        "few": integers(0, 5, batch, 6),
        "amounts": integers(-1, 70, batch, 6),
        "index": integers(0, 8, batch, 3, 8),
        "labels": integers(0, 8, batch),
        "of_rows": normal(5, 6),
        "of_bins": torch.tensor([-1.0, -0.2, 0.0, 0.5, 1.0]),
        "of_places": torch.tensor([2, 0, 1]),
    }


def _corners(x: torch.Tensor) -> torch.Tensor:
    changed = x.clone()
    changed.fill_diagonal_(9)
    return changed


def _gradients(convolve: Callable[..., Any], x: torch.Tensor, *shape: int, **options: Any) -> Any:
    """Returns the gradients of a convolution by its input, by a weight of a shape, and by a bias."""

    def loss(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return (convolve(x, weight, bias, **options) ** 2).mean()

    weight = torch.arange(float(prod(shape))).sin().reshape(shape)
    return torch.func.grad(loss, (0, 1, 2))(x, weight, torch.arange(float(shape[0])).cos())


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "hypot": lambda edges, others: torch.hypot(edges, others),
    "erfinv": lambda edges: torch.erfinv(edges / 2),
    "erfc": lambda edges: torch.erfc(edges),
    "erfcx": lambda edges: torch.special.erfcx(edges),
    "log_ndtr": lambda edges: torch.special.log_ndtr(edges),
    "lgamma": lambda edges: torch.lgamma(edges),
    "digamma": lambda edges: torch.digamma(edges),
    "logaddexp": lambda edges, others: torch.logaddexp(edges, others),
    "isfinite": lambda edges: torch.isfinite(edges),
    "same": lambda edges: edges == edges,
    "reciprocal": lambda edges: torch.reciprocal(edges),
    "nan_to_num": lambda edges: torch.nan_to_num(edges, 1.0, 2.0, -2.0),
    "maximum": lambda edges, others: torch.maximum(edges, others),
    "clamp": lambda edges: edges.clamp(-1, 1),
    "relu6": lambda edges: F.relu6(edges),
    "hardsigmoid": lambda edges: F.hardsigmoid(edges),
    "shift left": lambda ints, amounts: ints << amounts,
    "shift right": lambda ints, amounts: ints >> amounts,
    "shift by 2": lambda ints: (ints << 2, ints >> 2),
    "cube": lambda ints: ints**3,
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "max": lambda edges: torch.max(edges, 1),
    "argmin": lambda edges: edges.argmin(1),
    "nansum": lambda edges: torch.nansum(edges[:, 8:], 1),
    "cumprod": lambda x: x.cumprod(2),
    "cumprod of the batch": lambda ints: ints.cumprod(0),
    "cummax": lambda edges: torch.cummax(edges, 1),
    "cummin": lambda few: torch.cummin(few, 1),
    "cumsum": lambda ints: ints.cumsum(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "dist": lambda x, y: torch.dist(x, y),
    "cdist": lambda x, y: [torch.cdist(x, y, p=p) for p in (0.0, 1.0, 2.0, 3.0, inf)],
    "pdist": lambda of_rows: F.pdist(of_rows),
}
SORTS: dict[str, Callable[..., Any]] = {
    "median": lambda x: x.median(1),
    "median of edges": lambda edges: edges.median(1).values,
    "median of the batch": lambda x: x.median(0).values,
    "median of all": lambda few: few.median(),
    "nanmedian": lambda edges: edges.nanmedian(1).values,
    "mode": lambda few: torch.mode(few, 1),
    "kthvalue": lambda x: torch.kthvalue(x, 2, 2),
    "sort of edges": lambda edges: torch.sort(edges, dim=1),
    "descending sort of edges": lambda edges: torch.sort(edges, dim=1, stable=True, descending=True),
    "topk of edges": lambda edges: torch.topk(edges, 4, 1).values,
    "stable sort": lambda few: torch.sort(few, dim=1, stable=True, descending=True),
    "argsort": lambda few: torch.argsort(few, dim=1, stable=True),
    "topk": lambda x: torch.topk(x, 3, 2),
    "quantile": lambda x: torch.quantile(x, 0.3, dim=2),
}
SHAPES: dict[str, Callable[..., Any]] = {
    "roll": lambda image: (image.roll((2, -3), (2, 3)), image.roll(5)),
    "flip": lambda image: image.flip(1, 3),
    "repeat_interleave": lambda x: x.repeat_interleave(3, 1),
    "tril": lambda x: (x.tril(-1), x.triu(1)),
    "diagonal": lambda x: (x.diagonal(0, 1, 2), x.diagonal(2, 1, 2), x.diagonal(-1, 2, 1)),
    "diagonal_scatter": lambda x, few: torch.diagonal_scatter(x, few[:, :3].float(), 1, 1, 2),
    "trace": lambda of_rows: (torch.trace(of_rows), torch.diag(of_rows)),
    "unfold": lambda series: (series.unfold(2, 3, 2), series.unfold(2, 7, 1)),
    "block_diag": lambda of_rows, of_bins: torch.block_diag(of_rows, of_bins, of_rows),
    "one_hot": lambda few: F.one_hot(few, 5),
    "searchsorted": lambda of_bins, edges: [torch.searchsorted(of_bins, edges, right=one) for one in (False, True)],
    "searchsorted in rows": lambda x, y: torch.searchsorted(x.cumsum(2).abs().cumsum(2), y),
    "bucketize": lambda edges, of_bins: torch.bucketize(edges, of_bins, right=True),
    "histc": lambda x: (torch.histc(x, 5, -2, 2), torch.histc(x, 4)),
    "multilabel_margin_loss": lambda few, x: F.multilabel_margin_loss(x[:, 0, :6], torch.where(few > 3, -1, few)),
    "cross_entropy": lambda x, labels: F.cross_entropy(x[:, 0], labels, ignore_index=2, label_smoothing=0.1),
}
SCATTERS: dict[str, Callable[..., Any]] = {
    "scatter_reduce": lambda x, index, y: [
        x.scatter_reduce(2, index[:, :2, :5], y, one, include_self=own)
        for one in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    "scatter_add": lambda x, index, y: x.scatter_add(2, index, y),
    "scatter with products": lambda x, index, y: x.scatter(2, index, y, reduce="multiply"),
    "index_reduce": lambda x, of_places, y: x.index_reduce(1, of_places, y, "amax"),
    "put": lambda x, of_places: torch.put(x, of_places - 1, torch.tensor([1.0, 2.0, 3.0])),
    "fill_diagonal_": lambda of_rows: _corners(of_rows),
    "max_unpool2d": lambda image: F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2),
    "embedding_bag by offsets": lambda few, of_rows: [
        F.embedding_bag(few.flatten(), of_rows, torch.tensor([0, 3, 3, 10]), mode=one) for one in ("sum", "mean", "max")
    ],
}
BAGS_AND_POOLS: dict[str, Callable[..., Any]] = {
    "embedding_bag": lambda few, of_rows: [
        F.embedding_bag(few, of_rows, mode=one, padding_idx=2) for one in ("sum", "mean", "max")
    ],
    "weighted embedding_bag": lambda few, of_rows, ints: F.embedding_bag(
        few, of_rows, per_sample_weights=ints.float(), mode="sum"
    ),
    "avg_pool1d": lambda series: F.avg_pool1d(series, 2, 2, ceil_mode=True),
    "avg_pool2d": lambda image: [
        F.avg_pool2d(image, 3, 2, 1, ceil_mode=True, count_include_pad=True),
        F.avg_pool2d(image, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(image, 3, 2, 1, divisor_override=2),
    ],
    "avg_pool3d": lambda volume: (
        F.avg_pool3d(volume, 2, 2, ceil_mode=True),
        F.avg_pool3d(volume, 2, 2, divisor_override=3),
    ),
    "adaptive_avg_pool3d": lambda volume: F.adaptive_avg_pool3d(volume, (2, 3, 4)),
    "adaptive_max_pool2d": lambda image: F.adaptive_max_pool2d(image, (3, 5), return_indices=True),
    "adaptive_max_pool3d": lambda volume: F.adaptive_max_pool3d(volume, (2, 3, 4)),
    "conv_transpose2d": lambda image: F.conv_transpose2d(
        image, torch.arange(72.0).sin().reshape(4, 2, 3, 3), None, 2, 1, (1, 0)
    ),
    "trilinear": lambda volume: F.interpolate(volume, size=(3, 8, 9), mode="trilinear"),
}
GRADIENTS: dict[str, Callable[..., Any]] = {
    "gradient of embedding_bag": lambda few, of_rows: torch.func.grad(
        lambda rows: (F.embedding_bag(few, rows, padding_idx=1) ** 2).sum()
    )(of_rows),
    "gradients of a causal depthwise conv1d": lambda series: _gradients(F.conv1d, series, 4, 1, 4, padding=3, groups=4),
    "gradients of a depthwise conv2d": lambda image: _gradients(F.conv2d, image, 8, 1, 3, 3, padding=1, groups=4),
    "gradients of a strided depthwise conv2d": lambda image: _gradients(
        F.conv2d, image, 4, 1, 3, 3, stride=2, padding=(1, 0), groups=4
    ),
    "gradients of a dilated conv2d in groups": lambda image: _gradients(
        F.conv2d, image, 6, 2, 3, 2, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2
    ),
    "gradients of a strided conv2d": lambda image: _gradients(F.conv2d, image, 3, 4, 3, 3, stride=2, padding=1),
    "gradients of a depthwise conv3d": lambda volume: _gradients(F.conv3d, volume, 2, 1, 2, 3, 3, padding=1, groups=2),
}
