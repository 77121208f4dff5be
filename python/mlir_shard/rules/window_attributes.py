# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The windows of StableHLO ops by their attributes: convolutions, windowed reductions, and pads, whose are elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.rules.partition import is_everywhere
from mlir_shard.rules.reduction import Combiner, combiners_of_elements, neutral_number

_bindings = host.module("_mlir_libs._stablehlo")

CONVOLUTION, PAD, REDUCE_WINDOW = "stablehlo.convolution", "stablehlo.pad", "stablehlo.reduce_window"
WINDOWED = frozenset((CONVOLUTION, PAD, REDUCE_WINDOW))

_EDGES = ("edge_padding_low", "edge_padding_high")


@dataclass(frozen=True, slots=True)
class DimWindows:
    """The windows along dimension `dim` of what an op's windows are of, `result_dim` of its results.

    `position` is where the attributes of the op have them. A window has `extent` places, the next one begins `stride`
    places on, and the first one `low` before the first element; elements are `dilation` places apart. Behind the last
    one there are `high` places more.
    """

    dim: int
    result_dim: int
    position: int
    extent: int
    stride: int
    low: int
    high: int
    dilation: int

    @property
    def is_padded(self) -> bool:
        """Whether some windows may have padding that is before the first or behind the last element."""
        return self.low > 0 or self.high > 0

    @property
    def are_elements(self) -> bool:
        """Whether each window is one element, and each element has one window."""
        return (self.extent, self.stride, self.low, self.high, self.dilation) == (1, 1, 0, 0, 1)

    def padding_around(self, elements: int, windows: int) -> tuple[int, int]:
        """How much is before and behind so many elements, of which the first is the first one in the first window."""
        before = self.low % self.dilation
        return before, self.stride * (windows - 1) + self.extent - before - (elements - 1) * self.dilation - 1


def windows_along_dims(op: Any) -> tuple[DimWindows, ...]:
    """Those of one of `WINDOWED`, but for dimensions whose windows are elements."""
    op = op.operation
    found = {CONVOLUTION: _of_convolution, PAD: _of_pad, REDUCE_WINDOW: _of_reduce_window}[op.name](op)
    return tuple(one for one in found if op.name == CONVOLUTION or not one.are_elements)


def set_padding(op: Any, changed: dict[int, tuple[int, int]]) -> None:
    """Gives an op other padding before and behind at some positions, of what is between elements there as it was."""
    attributes = op.attributes
    if op.name == PAD:
        for side, name in enumerate(_EDGES):
            amounts = [changed[dim][side] if dim in changed else one for dim, one in enumerate(attributes[name])]
            attributes[name] = ir.DenseI64ArrayAttr.get(amounts)
        return
    positions = op.results[0].type.rank if op.name == REDUCE_WINDOW else op.results[0].type.rank - 2
    given = list(attributes["padding"]) if "padding" in attributes else [0] * (2 * positions)
    for position, around in changed.items():
        given[2 * position : 2 * position + 2] = around
    element = ir.IntegerType.get_signless(64)
    entries = [ir.IntegerAttr.get(element, one) for one in given]
    attributes["padding"] = ir.DenseElementsAttr.get(entries, ir.RankedTensorType.get([positions, 2], element))


def is_padding_neutral(op: Any) -> bool:
    """Whether it makes no difference that what is padding in one of `WINDOWED` is an element of a block.

    Where it is no element, it is up to whoever runs a reduction whether it is combined.
    """
    op = op.operation
    if op.name != REDUCE_WINDOW:
        return True
    scalars = list(op.operands)[len(op.results) :]
    return all(map(_repeats, combiners_of_elements(op), scalars))


def _repeats(combiner: Combiner | None, scalar: Any) -> bool:
    """Whether it makes no difference how often a scalar is combined with elements."""
    if combiner is None or combiner.is_idempotent:
        return combiner is not None
    neutral = neutral_number(combiner, scalar.type.element_type)
    return neutral is not None and is_everywhere(scalar, neutral)


def _of_pad(op: Any) -> tuple[DimWindows, ...]:
    amounts = zip(*(op.attributes[name] for name in (*_EDGES, "interior_padding")), strict=True)
    return tuple(DimWindows(dim, dim, dim, 1, 1, low, high, 1 + one) for dim, (low, high, one) in enumerate(amounts))


def _of_reduce_window(op: Any) -> tuple[DimWindows, ...]:
    given = _Given(op, "base_dilations", "window_dilations")
    sizes = list(op.attributes["window_dimensions"])
    return tuple(given.windows(dim, dim, dim, size) for dim, size in enumerate(sizes))


def _of_convolution(op: Any) -> tuple[DimWindows, ...]:
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = list(op.operands[1].type.shape)
    dims = zip(
        numbers.input_spatial_dimensions,
        numbers.output_spatial_dimensions,
        (kernel[dim] for dim in numbers.kernel_spatial_dimensions),
        strict=True,
    )
    given = _Given(op, "lhs_dilation", "rhs_dilation")
    return tuple(given.windows(position, *one) for position, one in enumerate(dims))


@dataclass(frozen=True, slots=True)
class _Given:
    """The attributes of an op with windows, two of them by their names: those of dilations."""

    op: Any
    between: str
    in_window: str

    def windows(self, position: int, dim: int, result_dim: int, size: int) -> DimWindows:
        """Those at a position, of `size` elements each."""
        low, high = self._around(position)
        extent = (size - 1) * self._at(position, self.in_window) + 1
        stride, dilation = self._at(position, "window_strides"), self._at(position, self.between)
        return DimWindows(dim, result_dim, position, extent, stride, low, high, dilation)

    def _at(self, position: int, name: str) -> int:
        return self.op.attributes[name][position] if name in self.op.attributes else 1

    def _around(self, position: int) -> list[int]:
        if "padding" not in self.op.attributes:
            return [0, 0]
        return list(self.op.attributes["padding"])[2 * position : 2 * position + 2]
