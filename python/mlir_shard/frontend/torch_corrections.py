# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of torch that torch-mlir would lower wrongly, or to operations that are not local along sharded dimensions.

They are decomposed into others before the import, or corrected in the graph or in the module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import getitem
from typing import Any

import torch
from torch._decomp import get_decompositions

from mlir_shard.frontend.torch_graph import call
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import insertion_point_after, replace_uses, uses_of

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


def _max_pool(
    x: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pads for `ceil_mode`, whose last windows may reach beyond the padding."""
    if not ceil_mode:
        return NotImplemented
    rank = len(kernel_size)
    strides = _of_each_dim(stride or kernel_size, rank)
    before, steps = _of_each_dim(padding, rank), _of_each_dim(dilation, rank)
    sizes = x.shape[-rank:]
    behind = []
    for size, extent, step, around, distance in zip(sizes, kernel_size, strides, before, steps, strict=True):
        window = distance * (extent - 1) + 1
        count = -(-(size + 2 * around - window) // step) + 1
        # The last window begins inside of the tensor or the padding before it.
        if (count - 1) * step >= size + around:
            count -= 1
        behind.append(max(around, (count - 1) * step + window - size - around))
    amounts = [one for pair in zip(reversed(before), reversed(behind), strict=True) for one in pair]
    least = -torch.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    padded = _aten.constant_pad_nd(x, amounts, least)
    values, places = _POOLS[rank](padded, kernel_size, strides, [0] * rank, steps)
    # Places count in the padded tensor.
    found, distance = torch.zeros_like(places), 1
    for size, padded_size, around in zip(reversed(sizes), reversed(padded.shape), reversed(before), strict=False):
        found = found + (places % padded_size - around) * distance
        places, distance = places // padded_size, distance * size
    return values, found


_POOLS = {2: _aten.max_pool2d_with_indices, 3: _aten.max_pool3d_with_indices}


def _of_each_dim(given: Sequence[int], rank: int) -> list[int]:
    return list(given) * rank if len(given) == 1 else list(given)


def _as_strided(
    x: torch.Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> torch.Tensor:
    is_reshape = list(stride) == list(torch.empty(size, device="meta").stride()) and prod(size) == x.numel()
    return x.reshape(size) if is_reshape and not storage_offset and x.is_contiguous() else NotImplemented


def _fmod(x: torch.Tensor, y: Any) -> torch.Tensor:
    """Gives the remainder of magnitudes, which is exact, the sign of the dividend."""
    found = torch.remainder(abs(x), abs(y))
    return torch.where(x < 0, -found, found)


def _pad(x: torch.Tensor, pad: Sequence[int], value: complex = 0) -> torch.Tensor:
    """Slices where the amount is negative, and pads the slice."""
    if min(pad, default=0) >= 0:
        return NotImplemented
    for place in range(len(pad) // 2):
        dim = x.dim() - 1 - place
        low, high = (max(0, -amount) for amount in pad[2 * place : 2 * place + 2])
        x = _aten.slice(x, dim, low, x.shape[dim] - high)
    return _aten.constant_pad_nd(x, [max(0, amount) for amount in pad], value)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    # A loss reads one element of each row this way, and its gradient writes one. As elementwise ops these are local
    # along all sharded dimensions in every dialect; torch-mlir lowers them to loads, which are not local, or to its own
    # ops.
    _aten.gather.default: _gather,
    _aten.scatter.value: _scatter,
    # For linalg and tosa, torch-mlir slices at the wrong place.
    _aten.constant_pad_nd.default: _pad,
    # torch decomposes some reshapes to views of memory, which are imported as a gather of all elements.
    _aten.as_strided.default: _as_strided,
    # torch-mlir ignores `ceil_mode` for StableHLO.
    _aten.max_pool2d_with_indices.default: _max_pool,
    _aten.max_pool3d_with_indices.default: _max_pool,
    # These have no lowering.
    _aten.fmod.Scalar: _fmod,
    _aten.fmod.Tensor: _fmod,
}
"""Decompositions besides those of torch-mlir."""
RESIZES = get_decompositions(
    [getattr(_aten, f"{name}{rank}d") for name in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)]
)
"""Operators that torch-mlir does not lower, or wrongly if the result is smaller: to the first elements."""

_INDEXED = (_aten.index.Tensor, _aten.index_put.default)
_RANGES = (_aten.arange.default, _aten.arange.start, _aten.arange.start_step)
_PLACES = (_aten.argmax.default, _aten.argmin.default)
_WITH_PLACES = (_aten.sort.default, _aten.topk.default)
_OF_SAME_ELEMENTS = (
    _aten.expand.default,
    _aten.permute.default,
    _aten.reshape.default,
    _aten.select.int,
    _aten.slice.Tensor,
    _aten.squeeze.dims,
    _aten.unsqueeze.default,
    _aten.view.default,
)


def count_indices_from_the_start(graph: torch.fx.Graph) -> None:
    """Adds the sizes of dimensions to negative indices of a graph, which torch-mlir clamps to 0 for StableHLO."""
    for node in list(graph.nodes):
        if node.target not in _INDEXED:
            continue
        shape = node.args[0].meta["val"].shape
        indices = list(node.args[1])
        for dim, index in enumerate(indices):
            if index is None or index.meta["val"].dtype == torch.bool or _is_never_negative(index):
                continue
            with graph.inserting_before(node):
                is_negative = call(graph, _aten.lt.Scalar, index, 0)
                moved = call(graph, _aten.add.Tensor, index, shape[dim])
                indices[dim] = call(graph, _aten.where.self, is_negative, moved, index)
        node.args = (node.args[0], indices, *node.args[2:])


def _is_never_negative(index: torch.fx.Node) -> bool:
    """Returns whether the elements of an index are known not to be negative."""
    while index.target in _OF_SAME_ELEMENTS:
        index = index.args[0]
    if index.target is getitem:
        # The first result of these operators has values, the second one places.
        return index.args[0].target in _WITH_PLACES and index.args[1] == 1
    return index.target in _PLACES or (index.target in _RANGES and all(one >= 0 for one in index.args))


def correct_remainders(module: Any) -> None:
    """Gives remainders of StableHLO the sign of the divisor, as torch does; StableHLO's is that of the dividend."""
    for op in operations_named(module.operation, "stablehlo.remainder"):
        divisor, found = op.operands[1], op.results[0]
        uses = uses_of(found)
        with module.context, op.location, insertion_point_after(found):
            zero = stablehlo.splat(found.type, 0)
            signs = [stablehlo.compare("LT", one, zero) for one in (found, divisor)]
            is_wrong = stablehlo.binary("and", stablehlo.compare("NE", found, zero), stablehlo.binary("xor", *signs))
            replace_uses(uses, stablehlo.select(is_wrong, stablehlo.binary("add", found, divisor), found))
