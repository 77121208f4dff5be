# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO convolutions, windowed reductions and pads along sharded dimensions, on blocks with borders of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.operator.common_axes import op_mesh
from mlir_shard.resharding.windows import window_halo
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.windows import (
    CONVOLUTION,
    PAD,
    REDUCE_WINDOW,
    DimWindows,
    is_padding_neutral,
    set_padding,
    windows_along_dims,
)
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes
from mlir_shard.transforms.halo.halo_exchange import BorderExchange, ManualPart, with_borders
from mlir_shard.transforms.halo.moving_ops import Surroundings, is_zero_constant

_bindings = host.module("_mlir_libs._stablehlo")
BORDERED = (CONVOLUTION, PAD, REDUCE_WINDOW)


@dataclass(frozen=True, slots=True)
class _Windowed:
    """An op: the operands its windows are of, with the scalars around them (None: zeros), and its windows.

    `labels` name the dimensions of each tensor, operands first: those with the same name have to be sharded alike,
    those that have none to be whole.
    """

    op: Any
    padding: Mapping[int, Any | None]
    windows: tuple[DimWindows, ...]
    labels: tuple[tuple[str | None, ...], ...]

    @staticmethod
    def of(op: Any) -> _Windowed:
        return {CONVOLUTION: _convolution, PAD: _pad, REDUCE_WINDOW: _reduce_window}[op.name](op)


def exchange_borders(op: Any, around: Surroundings) -> bool:
    """Replaces a convolution, a windowed reduction or a pad by one of blocks with what is sent from next to them.

    A pad only where something is. Says whether it did: not where no dimension with windows is sharded, where windows
    reach as far as that all can be gathered, where they lie otherwise between dilated elements in each block, where
    groups of features or batches are sharded, or where it is not certain what the padding of a reduction does to its
    result.
    """
    values = [*op.operands, *op.results]
    shardings = [sharding_of(value) for value in values]
    found = op_mesh(shardings, around.meshes)
    if found is None or not all(_is_static(value) for value in values):
        return False
    ref, mesh = found
    if mesh.is_maximal or any(sharding is not None and sharding.unreduced_axes for sharding in shardings):
        return False
    known = [
        sharding or TensorSharding.fully_closed(rank_of(value.type), ref)
        for value, sharding in zip(values, shardings, strict=True)
    ]
    windowed = _Windowed.of(op)
    axes = _axes_by_label(windowed, known)
    exchanges = None if axes is None else _exchanges(windowed, known, mesh)
    if (
        not exchanges
        or (op.name == PAD and not any(one.halo.below or one.halo.above for one in exchanges.values()))
        or (any(one.is_padded for one in windowed.windows if one.position in exchanges) and not is_padding_neutral(op))
        or any(not stablehlo.has_zero(value.type.element_type) for value in values)
    ):
        return False
    part = around.part(mesh, (axis for sharding in known for axis in sharding.sharding_axes))
    with ir.InsertionPoint(op), op.location:
        results = _Builder(windowed, known, exchanges, part).build()
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return True


class _Builder:
    """Builds the manual computation; shards that are not even are padded before, and cut after."""

    def __init__(
        self,
        windowed: _Windowed,
        shardings: Sequence[TensorSharding],
        exchanges: Mapping[int, BorderExchange],
        part: ManualPart,
    ) -> None:
        self._op = windowed.op
        self._windowed = windowed
        self._shardings = shardings
        self._exchanges = exchanges
        self._part = part

    def build(self) -> list[Any]:
        """The results of the op, whole as they were."""
        op, count = self._op, len(self._op.operands)
        inside, outside = self._shardings[:count], self._shardings[count:]
        operands = [
            self._even(number, value, one) for number, (value, one) in enumerate(zip(op.operands, inside, strict=True))
        ]
        types = [
            stablehlo.with_shape(value.type, self._even_shape(value, one))
            for value, one in zip(op.results, outside, strict=True)
        ]
        made = self._part.build_all(
            list(zip(operands, inside, strict=True)), list(zip(types, outside, strict=True)), self._body
        )
        return [
            stablehlo.first(new, list(old.type.shape), one)
            for new, old, one in zip(made, op.results, outside, strict=True)
        ]

    def _body(self, blocks: Sequence[Any]) -> list[Any]:
        values = list(blocks)
        for number, around in self._windowed.padding.items():
            padding = self._zero(values[number]) if around is None else values[around]
            is_zero = around is None or is_zero_constant(self._op.operands[around])
            for one in self._exchanges.values():
                values[number] = with_borders(values[number], padding, one, self._part.builder, is_zero=is_zero)
        copied = self._op.clone().operation
        for number, value in enumerate(values):
            copied.operands[number] = value
        for name in (sdy.SHARDING, sdy.SHARDING_RULE):
            if name in copied.attributes:
                del copied.attributes[name]
        for result, sharding in zip(copied.results, self._shardings[len(values) :], strict=True):
            even = stablehlo.with_shape(result.type, self._even_shape(result, sharding))
            result.set_type(self._part.local_type(even, sharding))
        shapes = values[0].type.shape, copied.results[0].type.shape
        padding = {
            one.position: one.padding_around(shapes[0][one.dim], shapes[1][one.result_dim])
            for one in self._windowed.windows
            if one.position in self._exchanges
        }
        set_padding(copied, padding)
        return list(copied.results)

    def _even(self, number: int, value: Any, sharding: TensorSharding) -> Any:
        """An operand with even shards, more of what is around it behind it."""
        shape = self._even_shape(value, sharding)
        if shape == list(value.type.shape):
            return value
        around = self._windowed.padding.get(number)
        padding = self._zero(value) if around is None else self._op.operands[around]
        return stablehlo.pad_behind(value, padding, shape, sharding)

    def _even_shape(self, value: Any, sharding: TensorSharding) -> list[int]:
        counts = (self._part.shards(sharding, dim) for dim in range(sharding.rank))
        return [-(-size // count) * count for size, count in zip(value.type.shape, counts, strict=True)]

    @staticmethod
    def _zero(value: Any) -> Any:
        return stablehlo.scalar(0, value.type.element_type)


def _is_static(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.has_static_shape and 0 not in value.type.shape


def _axes_by_label(windowed: _Windowed, shardings: Sequence[TensorSharding]) -> dict[str, Axes] | None:
    """The axes of dimensions by name; None where tensors do not agree, or one without a name is sharded."""
    found: dict[str, Axes] = {}
    for labels, sharding in zip(windowed.labels, shardings, strict=True):
        for label, of_dim in zip(labels, sharding.dim_shardings, strict=True):
            if found.setdefault(label, of_dim.axes) != of_dim.axes if label is not None else of_dim.axes:
                return None
    return found


def _exchanges(
    windowed: _Windowed, shardings: Sequence[TensorSharding], mesh: Mesh
) -> dict[int, BorderExchange] | None:
    """What is exchanged, by the position of its windows in attributes; None where a window reaches too far."""
    op = windowed.op
    found = {}
    for one in windowed.windows:
        of_dim = shardings[0].dim_shardings[one.dim]
        blocks = of_dim.sharded_size(mesh)
        if blocks == 1:
            continue
        sizes = op.operands[0].type.shape[one.dim], op.results[0].type.shape[one.result_dim]
        halo = window_halo(*sizes, blocks, one.stride, one.extent, -one.low, one.dilation)
        if halo is None:
            return None
        found[one.position] = BorderExchange(one.dim, of_dim.axes, blocks, halo)
    return found


def _pad(op: Any) -> _Windowed:
    dims: tuple[str | None, ...] = tuple(map(str, range(op.results[0].type.rank)))
    return _Windowed(op, {0: 1}, windows_along_dims(op), (dims, (), dims))


def _reduce_window(op: Any) -> _Windowed:
    count, rank = len(op.results), op.results[0].type.rank
    dims: tuple[str | None, ...] = tuple(map(str, range(rank)))
    padding = {number: number + count for number in range(count)}
    return _Windowed(op, padding, windows_along_dims(op), (dims,) * count + ((),) * count + (dims,) * count)


def _convolution(op: Any) -> _Windowed:
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    windows = windows_along_dims(op)
    labels: list[list[str | None]] = [[None] * value.type.rank for value in (*op.operands, *op.results)]
    for one in windows:
        labels[0][one.dim] = labels[2][one.result_dim] = f"window {one.position}"
    feature_groups, batch_groups = (op.attributes[f"{name}_group_count"].value for name in ("feature", "batch"))
    if batch_groups == 1:
        labels[0][numbers.input_batch_dimension] = labels[2][numbers.output_batch_dimension] = "batch"
    if feature_groups == batch_groups == 1:
        labels[0][numbers.input_feature_dimension] = labels[1][numbers.kernel_input_feature_dimension] = "in"
        labels[1][numbers.kernel_output_feature_dimension] = labels[2][numbers.output_feature_dimension] = "out"
    return _Windowed(op, {0: None}, windows, tuple(map(tuple, labels)))
