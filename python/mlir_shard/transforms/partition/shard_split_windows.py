# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of convolutions and pools along sharded dimensions, as operations on shards with borders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.computed_bodies import constant_of
from mlir_shard.rules.partition import is_zero
from mlir_shard.rules.registry import has_static_shapes
from mlir_shard.rules.windows import (
    CONVOLUTION,
    PAD,
    REDUCE_WINDOW,
    DimWindows,
    is_padding_neutral,
    set_dilation,
    set_padding,
    windows_along_dims,
    windows_of_reduction,
)
from mlir_shard.sharding import Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.axes import Axes
from mlir_shard.transforms.partition.sharded_pieces import ShardedValue
from mlir_shard.transforms.shardings import listed_meshes, sharding_and_mesh

_bindings = host.module("_mlir_libs._stablehlo")
_SELECT_AND_SCATTER = "stablehlo.select_and_scatter"
_SLICE = "stablehlo.slice"


@register
class SplitWindows(Pass):
    """Rewrites gradients of convolutions and of pools as computations on shards with borders of adjacent shards.

    The gradient of a kernel is a convolution whose kernel is as large as its input, both sharded equally. The shards
    are moved to the feature dimension, which is contracted, so the result is a partial sum on each device. Otherwise
    the kernel would be gathered. Zeros are added to both for even shards between which the windows advance equally. The
    rewrite is done if the result has fewer than half the elements that would be gathered.

    The gradient of a max pool is a `select_and_scatter` of a padded image, cropped afterwards. The windows of each
    shard scatter into the shard and into its borders, which are then added to the shards to which they belong.

    If windows advance by other distances than shards, the image is shifted to even shards of the elements that they
    advance by, and windows that scatter zeros are added.

    First, a pad with the value with which a windowed reduction or a convolution pads is folded into its padding, and
    padding between sharded elements into its dilation, as in the gradient of an average pool.
    """

    name = "shard-split-windows"
    anchor = "func.func"
    summary = "Computes gradients of convolutions and pooling on shards with halos"
    needs = (CONVOLUTION, REDUCE_WINDOW, _SELECT_AND_SCATTER)

    def run(self, op: Any) -> bool:
        meshes = listed_meshes(op)
        changed = False
        for inner in operations_named(op, CONVOLUTION, REDUCE_WINDOW):
            changed |= _fold_pad(inner)
        for inner in operations_named(op, CONVOLUTION):
            changed |= _split_convolution(inner, meshes)
        for inner in operations_named(op, _SELECT_AND_SCATTER):
            changed |= _split_scatter(inner, meshes)
        return changed


def _fold_pad(op: Any) -> bool:
    """Makes the pad of the first operand padding of the op, if results stay the same; returns whether it did.

    Padding between elements becomes dilation if they are sharded.
    """
    pad = defining_op(op.operands[0], PAD)
    if pad is None or not has_static_shapes(op):
        return False
    fill, amounts, between = pad.operands[1], _around(pad), elements(pad.attributes["interior_padding"])
    if any(between) and not any(_axes_along(pad.operands[0], dim) for dim, amount in enumerate(between) if amount):
        return False
    if op.name == CONVOLUTION:
        is_neutral = is_zero(fill)
    else:
        is_neutral = len(op.results) == 1 and is_padding_neutral(op) and _is_same_constant(fill, op.operands[1])
    windows = {one.dim: one for one in _windows(op) if one.dilation == 1}
    padded = [dim for dim, around in enumerate(amounts) if around != (0, 0) or between[dim]]
    if not is_neutral or any(dim not in windows or min(amounts[dim]) < 0 for dim in padded):
        return False
    around = {dim: (windows[dim].low + amounts[dim][0], windows[dim].high + amounts[dim][1]) for dim in padded}
    set_padding(op, {windows[dim].position: both for dim, both in around.items()})
    if any(between):
        set_dilation(op, {windows[dim].position: 1 + between[dim] for dim in padded})
    op.operands[0] = pad.operands[0]
    _erase_if_unused(pad)
    return True


def _windows(op: Any) -> Sequence[DimWindows]:
    return windows_along_dims(op) if op.name == CONVOLUTION else windows_of_reduction(op)


def _around(pad: Any) -> list[tuple[int, int]]:
    return list(zip(*(elements(pad.attributes[f"edge_padding_{side}"]) for side in ("low", "high")), strict=True))


def _is_same_constant(left: Any, right: Any) -> bool:
    if left == right:
        return True
    one, other = constant_of(left), constant_of(right)
    # An attribute cannot be compared with None.
    return one is not None and other is not None and bool(one == other)


def _erase_if_unused(*ops: Any) -> None:
    for op in ops:
        if not any(list(result.uses) for result in op.results):
            op.erase()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A dimension of an image in `shards` shards of `size` elements along `axes`, and of a kernel in those of `window`.

    The windows of a shard cover the elements from `start` until before `end`, counted from its first one, between
    `padding` places at both ends.
    """

    dim: int
    axes: Axes
    shards: int
    size: int
    window: int
    start: int
    end: int
    padding: tuple[int, int]

    @property
    def before(self) -> int:
        """The number of elements that are in the shard before."""
        return max(0, -self.start)

    @property
    def after(self) -> int:
        """The number of elements that are in the shard behind."""
        return max(0, self.end - self.size)


def _common_mesh(image: Any, other: Any, meshes: Mapping[str, Mesh]) -> tuple[TensorSharding, Mesh] | None:
    """Returns the sharding and the mesh of an image, if another value may be on that mesh too."""
    found, of_other = sharding_and_mesh(image, meshes), sharding_of(other)
    if found is None or found[0].unreduced_axes:
        return None
    if of_other is not None and (of_other.mesh_or_ref != found[0].mesh_or_ref or of_other.unreduced_axes):
        return None
    return found


def _axes_along(value: Any, dim: int) -> Axes:
    sharding = sharding_of(value)
    return () if sharding is None else sharding.dim_shardings[dim].axes


# Gradients of kernels.


def _split_convolution(op: Any, meshes: Mapping[str, Mesh]) -> bool:
    image, kernel = op.operands
    found = _common_mesh(image, kernel, meshes)
    # Groups of the batch, as in the gradient of a depthwise kernel, are not contracted.
    if found is None or op.attributes["feature_group_count"].value != 1 or not has_static_shapes(op):
        return False
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    cuts = [
        (one, cut)
        for one in windows_along_dims(op)
        if (cut := _window_cut(op, one, numbers.kernel_spatial_dimensions[one.position], *found)) is not None
    ]
    shards = prod(cut.shards for _, cut in cuts)
    if 2 * prod(op.results[0].type.shape) >= prod(kernel.type.shape) * (shards - 1) // shards:
        return False
    with ir.InsertionPoint(op), op.location:
        zero = stablehlo.scalar(0, image.type.element_type)
        images, kernels = (ShardedValue.of(value, found[0].mesh_or_ref) for value in (image, kernel))
        for one, cut in cuts:
            window = numbers.kernel_spatial_dimensions[one.position]
            images = images.padded(one.dim, 0, cut.shards * cut.size - image.type.shape[one.dim], zero)
            images = images.cut(one.dim, cut.axes, cut.shards).with_borders(one.dim, cut.before, cut.after, zero)
            images = images.along(one.dim + 1, cut.before + cut.start, cut.before + cut.end)
            images = images.in_features(one.dim, numbers.input_feature_dimension)
            kernels = kernels.padded(window, 0, cut.shards * cut.window - kernel.type.shape[window], zero)
            kernels = kernels.cut(window, cut.axes, cut.shards)
            kernels = kernels.in_features(window, numbers.kernel_input_feature_dimension)
    op.operands[0], op.operands[1] = images.value, kernels.value
    set_padding(op, {one.position: cut.padding for one, cut in cuts})
    return True


def _window_cut(op: Any, windows: DimWindows, kernel_dim: int, sharding: TensorSharding, mesh: Mesh) -> _Cut | None:
    image, kernel = op.operands
    of_dim = sharding.dim_shardings[windows.dim]
    shards = of_dim.sharded_size(mesh)
    size, window = image.type.shape[windows.dim], kernel.type.shape[kernel_dim]
    is_reversed = "window_reversal" in op.attributes and op.attributes["window_reversal"][windows.position]
    if shards == 1 or is_reversed or _axes_along(kernel, kernel_dim) not in ((), of_dim.axes):
        return None
    step = op.attributes["rhs_dilation"][windows.position] if "rhs_dilation" in op.attributes else 1
    size = -(-max(size, -(-window * step // windows.dilation)) // shards)
    while size * windows.dilation % step:
        size += 1
    places = size * windows.dilation
    # Otherwise it is not a gradient, whose windows advance over the image as the elements of the kernel do.
    if 2 * window * step <= places * shards:
        return None
    # The places that all windows of the kernel's shard cover, from the first place of the image's shard on.
    first = -windows.low
    last = first + (op.results[0].type.shape[windows.result_dim] - 1) * windows.stride + places - step + 1
    start, end = -(-first // windows.dilation), -(-last // windows.dilation)
    padding = start * windows.dilation - first, last - (end - 1) * windows.dilation - 1
    cut = _Cut(windows.dim, of_dim.axes, shards, size, places // step, start, end, padding)
    return None if start >= end or max(cut.before, cut.after) > size else cut


# Gradients of pools.


@dataclass(frozen=True, slots=True)
class _ScatterCut:
    """A dimension of an image and of its windows in `shards` even shards along `axes`.

    Attributes:
        low: the elements of padding in front of the image, which is padded to `size` elements.
        windows: the number of windows, with those that are added to even shards.
        before: the elements of the shard in front of a shard that its windows cover.
        after: those of the shard behind it.
    """

    dim: int
    axes: Axes
    shards: int
    low: int
    size: int
    windows: int
    before: int
    after: int


def _split_scatter(op: Any, meshes: Mapping[str, Mesh]) -> bool:
    image, source, initial = op.operands
    if not has_static_shapes(op) or not is_zero(initial) or not _adds(op):
        return False
    pad, crop, amounts, fill = defining_op(image, PAD), None, [(0, 0)] * image.type.rank, initial
    if pad is not None and not any(elements(pad.attributes["interior_padding"])):
        crop = _sole_slice(op.results[0])
        if crop is None or not _crops(crop, _around(pad), pad.operands[0].type.shape):
            return False
        image, amounts, fill = pad.operands[0], _around(pad), pad.operands[1]
    found = _common_mesh(image, source, meshes)
    windows = windows_of_reduction(op)
    if found is None or any((one.low, one.high) != (0, 0) for one in windows):
        return False
    sharded = [one.dim for one in windows if not one.are_elements and _shards(one.dim, *found) > 1]
    cuts = [cut for dim in sharded if (cut := _scatter_cut(windows[dim], amounts[dim], image, source, *found))]
    if not cuts or len(cuts) < len(sharded):
        return False
    with ir.InsertionPoint(op), op.location:
        value = _scattered(op, fill, image, amounts, cuts, found[0])
    (op if crop is None else crop).results[0].replace_all_uses_with(value)
    for one in (crop, op):
        if one is not None:
            one.erase()
    if crop is not None:
        _erase_if_unused(pad)
    return True


def _sole_slice(value: Any) -> Any | None:
    users = [use.owner.operation for use in value.uses]
    return users[0] if len(users) == 1 and users[0].name == _SLICE else None


def _adds(op: Any) -> bool:
    block = op.regions[1].blocks[0]
    names = [inner.operation.name for inner in block.operations]
    return names == ["stablehlo.add", "stablehlo.return"] and set(block.operations[0].operands) == set(block.arguments)


def _crops(crop: Any, amounts: Sequence[tuple[int, int]], shape: Sequence[int]) -> bool:
    """Returns whether a slice removes the padding and nothing else."""
    starts, limits, strides = (
        elements(crop.attributes[name]) for name in ("start_indices", "limit_indices", "strides")
    )
    lows = [low for low, _ in amounts]
    return (
        starts == lows and limits == [low + size for low, size in zip(lows, shape, strict=True)] and set(strides) == {1}
    )


def _shards(dim: int, sharding: TensorSharding, mesh: Mesh) -> int:
    return sharding.dim_shardings[dim].sharded_size(mesh)


def _scatter_cut(
    windows: DimWindows, around: tuple[int, int], image: Any, source: Any, sharding: TensorSharding, mesh: Mesh
) -> _ScatterCut | None:
    dim, shards, axes = windows.dim, _shards(windows.dim, sharding, mesh), sharding.dim_shardings[windows.dim].axes
    size, count = image.type.shape[dim], source.type.shape[dim]
    if windows.dilation != 1 or min(around) < 0 or _axes_along(source, dim) not in ((), axes):
        return None
    low, covered, step = around[0], max(0, windows.extent - windows.stride), shards * windows.stride
    if size % step == 0 and count <= size // windows.stride and low < windows.extent:
        # The windows advance by as many elements as a shard has.
        after = max(0, covered - low)
        cut = _ScatterCut(dim, axes, shards, 0, size, size // windows.stride, low, after)
    else:
        # Every shard has as many windows, the last ones beyond the image, and the elements that they advance by.
        steps = -(-max(count * windows.stride, (count - 1) * windows.stride + windows.extent) // step)
        cut = _ScatterCut(dim, axes, shards, low, steps * step, steps * shards, 0, covered)
    return None if max(cut.before, cut.after) > cut.size // shards else cut


def _scattered(
    op: Any,
    fill: Any,
    image: Any,
    amounts: Sequence[tuple[int, int]],
    cuts: Sequence[_ScatterCut],
    sharding: TensorSharding,
) -> Any:
    """Builds the op on shards with borders; returns its result without the padding of the image."""
    images, sources = (ShardedValue.of(value, sharding.mesh_or_ref) for value in (image, op.operands[1]))
    shape, zero = image.type.shape, op.operands[2]
    rest = [dim for dim in range(len(amounts)) if dim not in {cut.dim for cut in cuts}]
    for dim in rest:
        images = images.padded(dim, *amounts[dim], fill)
    sizes, strides = (elements(op.attributes[name]) for name in ("window_dimensions", "window_strides"))
    # In reverse order, as each cut shifts the dimensions after it by one.
    for cut in reversed(cuts):
        images = images.padded(cut.dim, cut.low, cut.size - cut.low - shape[cut.dim], fill)
        images = images.cut(cut.dim, cut.axes, cut.shards).with_borders(cut.dim, cut.before, cut.after, fill)
        # Windows that are added scatter zeros.
        sources = sources.padded(cut.dim, 0, cut.windows - sources.value.type.shape[cut.dim], zero)
        sources = sources.cut(cut.dim, cut.axes, cut.shards)
        sizes.insert(cut.dim, 1)
        strides.insert(cut.dim, 1)
    scattered = op.clone().operation
    scattered.operands[0], scattered.operands[1] = images.value, sources.value
    scattered.attributes["window_dimensions"], scattered.attributes["window_strides"] = map(
        stablehlo.sizes, (sizes, strides)
    )
    for name in ("padding", sdy.SHARDING_RULE):
        if name in scattered.attributes:
            del scattered.attributes[name]
    scattered.results[0].set_type(images.value.type)
    scattered.attributes[sdy.SHARDING] = sdy.attribute(TensorShardingPerValue((images.sharding,)))
    total = ShardedValue(scattered.results[0], images.axes, images.mesh)
    for cut in cuts:
        total = total.with_borders_added(cut.dim, cut.before, cut.after, zero).uncut(cut.dim)
        total = total.padded(cut.dim, -cut.low, cut.low + shape[cut.dim] - cut.size, zero)
    for dim in rest:
        total = total.along(dim, amounts[dim][0], amounts[dim][0] + shape[dim])
    return total.value
