# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Windows: the elements of an operand that an op reads for an element of its result.

They are read from the attributes of StableHLO's convolutions, windowed reductions and pads, from linalg's indexing
maps, and from the padding of `tensor.pad` and `tosa.pad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import dialect, ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.linalg_loops import is_structured, loops_of, steps_of
from mlir_shard.rules.partition import Blocks, is_everywhere
from mlir_shard.rules.reduction import Combiner, combiners_of_elements, neutral_number
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import TensorMapping

_bindings = host.module("_mlir_libs._stablehlo")
CONVOLUTION = "stablehlo.convolution"
PAD = "stablehlo.pad"
REDUCE_WINDOW = "stablehlo.reduce_window"
WINDOWED = frozenset((CONVOLUTION, PAD, REDUCE_WINDOW))
_DILATIONS = {CONVOLUTION: "lhs_dilation", REDUCE_WINDOW: "base_dilations"}
_EDGES = ("edge_padding_low", "edge_padding_high")


@dataclass(frozen=True, slots=True)
class DimWindows:
    """The windows of an op along dimension `dim` of its windowed operands and `result_dim` of its results.

    `position` is their index in the attributes of the op. A window has `extent` places; the next one begins `stride`
    places later, and the first one `low` places before the first element. Elements are `dilation` places apart. There
    are `high` more places behind the last element.
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
        """Whether some windows may have padding before the first element or behind the last one."""
        return self.low > 0 or self.high > 0

    @property
    def are_elements(self) -> bool:
        """Whether each window is one element, and each element has one window."""
        return (self.extent, self.stride, self.low, self.high, self.dilation) == (1, 1, 0, 0, 1)

    def tile(self, elements: int, windows: int) -> bool:
        """Returns whether `windows` windows are side by side in `elements` elements, without padding or others."""
        is_plain = (self.low, self.high, self.dilation) == (0, 0, 1)
        return is_plain and self.extent <= self.stride and windows * self.stride == elements

    def padding_around(self, elements: int, windows: int) -> tuple[int, int]:
        """Returns the padding before and behind `elements` elements; their first one is first in the first window."""
        before = self.low % self.dilation
        return before, self.stride * (windows - 1) + self.extent - before - (elements - 1) * self.dilation - 1


def windows_along_dims(op: Any) -> tuple[DimWindows, ...]:
    """Returns the windows of one of `WINDOWED`, without those that are single elements, except for a convolution."""
    op = op.operation
    found = {CONVOLUTION: _of_convolution, PAD: _elements_of_pad, REDUCE_WINDOW: windows_of_reduction}[op.name](op)
    return tuple(one for one in found if op.name == CONVOLUTION or not one.are_elements)


def set_padding(op: Any, changed: dict[int, tuple[int, int]]) -> None:
    """Sets the padding of an op before and behind at some positions; the padding between elements there stays."""
    attributes = op.attributes
    if op.name == PAD:
        for side, name in enumerate(_EDGES):
            amounts = [
                changed[dim][side] if dim in changed else one for dim, one in enumerate(elements(attributes[name]))
            ]
            attributes[name] = ir.DenseI64ArrayAttr.get(amounts)
        return
    positions = op.results[0].type.rank if op.name == REDUCE_WINDOW else op.results[0].type.rank - 2
    given = elements(attributes["padding"]) if "padding" in attributes else [0] * (2 * positions)
    for position, around in changed.items():
        given[2 * position : 2 * position + 2] = around
    element = ir.IntegerType.get_signless(64)
    entries = [ir.IntegerAttr.get(element, one) for one in given]
    attributes["padding"] = ir.DenseElementsAttr.get(entries, ir.RankedTensorType.get([positions, 2], element))


def set_dilation(op: Any, changed: dict[int, int]) -> None:
    """Sets the distances of the elements of a convolution or a windowed reduction at some positions."""
    name = _DILATIONS[op.name]
    positions = op.results[0].type.rank if op.name == REDUCE_WINDOW else op.results[0].type.rank - 2
    given = elements(op.attributes[name]) if name in op.attributes else [1] * positions
    op.attributes[name] = ir.DenseI64ArrayAttr.get([changed.get(at, one) for at, one in enumerate(given)])


def is_padding_neutral(op: Any) -> bool:
    """Returns whether the result of one of `WINDOWED` is the same if padding is made of elements of a shard.

    If padding is not made of elements, an implementation of a reduction may combine it or not.
    """
    op = op.operation
    if op.name != REDUCE_WINDOW:
        return True
    scalars = list(op.operands)[len(op.results) :]
    return all(map(_repeats, combiners_of_elements(op), scalars))


def _repeats(combiner: Combiner | None, scalar: Any) -> bool:
    """Returns whether the result is the same however often a scalar is combined with elements."""
    if combiner is None or combiner.is_idempotent:
        return combiner is not None
    neutral = neutral_number(combiner, scalar.type.element_type)
    return neutral is not None and is_everywhere(scalar, neutral)


def _elements_of_pad(op: Any) -> tuple[DimWindows, ...]:
    amounts = zip(*(elements(op.attributes[name]) for name in (*_EDGES, "interior_padding")), strict=True)
    return tuple(DimWindows(dim, dim, dim, 1, 1, low, high, 1 + one) for dim, (low, high, one) in enumerate(amounts))


def windows_of_reduction(op: Any) -> tuple[DimWindows, ...]:
    """Returns the windows of a windowed reduction, or of a `select_and_scatter`, along each dimension."""
    attributes, rank = op.attributes, op.results[0].type.rank
    sizes = elements(attributes["window_dimensions"]) if "window_dimensions" in attributes else [1] * rank
    geometry = _Geometry(op, _DILATIONS[REDUCE_WINDOW], "window_dilations")
    return tuple(geometry.windows(dim, dim, dim, size) for dim, size in enumerate(sizes))


def _of_convolution(op: Any) -> tuple[DimWindows, ...]:
    numbers = _bindings.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    kernel = list(op.operands[1].type.shape)
    dims = zip(
        numbers.input_spatial_dimensions,
        numbers.output_spatial_dimensions,
        (kernel[dim] for dim in numbers.kernel_spatial_dimensions),
        strict=True,
    )
    geometry = _Geometry(op, _DILATIONS[CONVOLUTION], "rhs_dilation")
    return tuple(geometry.windows(place, *one) for place, one in enumerate(dims))


class _Geometry:
    """The strides, padding and dilations of windows; `between` and `in_window` are the attributes of dilations."""

    def __init__(self, op: Any, between: str, in_window: str) -> None:
        attributes = op.attributes
        names = "window_strides", "padding", between, in_window
        self._strides, self._padding, self._between, self._in_window = (
            elements(attributes[name]) if name in attributes else None for name in names
        )

    def windows(self, position: int, dim: int, result_dim: int, size: int) -> DimWindows:
        """Returns the windows at a position, of `size` elements."""

        def given(numbers: Sequence[int] | None) -> int:
            return 1 if numbers is None else numbers[position]

        low, high = (0, 0) if self._padding is None else self._padding[2 * position : 2 * position + 2]
        extent = (size - 1) * given(self._in_window) + 1
        return DimWindows(dim, result_dim, position, extent, given(self._strides), low, high, given(self._between))


_DYNAMIC = ir.ShapedType.get_dynamic_size()
_BEFORE_AND_BEHIND = 2
Amounts = tuple[tuple[int, int], ...]


def padding_of(op: Any) -> Amounts | None:
    """Returns the elements of padding before and behind each dimension; None if they are not constant."""
    op = op.operation
    if op.name == "tensor.pad":
        low, high = elements(op.attributes["static_low"]), elements(op.attributes["static_high"])
        return None if _DYNAMIC in (*low, *high) else tuple(zip(low, high, strict=True))
    shape = op.operands[1].owner
    if isinstance(shape, ir.Block) or shape.name != "tosa.const_shape":
        return None
    flat = [int(one) for one in shape.attributes["values"]]
    return tuple(zip(flat[0::_BEFORE_AND_BEHIND], flat[1::_BEFORE_AND_BEHIND], strict=True))


def scalar_of_region(op: Any) -> Any | None:
    """Returns the value from outside of a `tensor.pad` that its region yields everywhere; None if it computes one."""
    block = op.operation.regions[0].blocks[0]
    if len(block.operations) != 1:
        return None
    value = block.operations[0].operation.operands[0]
    return None if value in list(block.arguments) else value


_linalg = dialect("linalg")
# The offset from a spatial dimension to that of the kernel; the kernel of a pool is not an operand.
_KERNEL_DIMS = {
    "tosa.avg_pool2d": None,
    "tosa.conv2d": 0,
    "tosa.conv3d": 0,
    "tosa.depthwise_conv2d": -1,
    "tosa.max_pool2d": None,
}
# The attributes with the starts and the strides of a slice.
_SLICES = {
    "stablehlo.slice": ("start_indices", "strides"),
    "tensor.extract_slice": ("static_offsets", "static_strides"),
}


@dataclass(frozen=True, slots=True)
class Window:
    """A window along `dim` of an operand and along a factor of the result.

    Element i of the result along the factor is made of the `extent` elements from `offset + stride * i` on. Other
    elements of the result may be made of any elements. With a `dilation`, stride, extent and offset count places, and
    elements are `dilation` places apart. If the operand `is_part` of the result, other elements of the result are from
    other operands.
    """

    operand: int
    dim: int
    factor: int
    stride: int
    extent: int
    offset: int = 0
    dilation: int = 1
    is_part: bool = False

    def sized(self, size: int, result_size: int) -> FactorWindow:
        """Returns the window for dimensions of these sizes."""
        geometry = self.stride, self.extent, self.offset, self.dilation
        return FactorWindow(self.factor, self.operand, size, result_size, *geometry, self.is_part)


def windows_of(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows along permutation factors of a rule for which a device can be given the elements it needs."""
    op = op.operation
    if not rule.permutation_factors:
        return ()
    find = _of_loops if is_structured(op) else _OF_OPS.get(op.name)
    return () if find is None else find(op, rule)


def moving_windows(op: Any, blocks: Blocks) -> list[Window]:
    """Returns the windows of an op along factors that are sharded; no windows if its rule is not known."""
    found = () if blocks.rule is None or not blocks.factor_axes else windows_of(op, blocks.rule)
    return [window for window in found if blocks.factor_axes[window.factor]]


def dim_of(factor: int, mapping: TensorMapping) -> int | None:
    """Returns the dimension of a tensor that is made of only this factor; None if none exists."""
    return next((dim for dim, of in enumerate(mapping.dim_mappings) if of.factor_indices == (factor,)), None)


def _of_loops(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    loops = loops_of(op)
    maps = [attr.value for attr in _linalg.get_indexing_maps(op)]
    sizes = {
        loop: size
        for operand, dims in zip(op.operands, loops.dims, strict=True)
        for loop, size in zip(dims, shape_of(operand.type), strict=False)
        if loop is not None
    }
    found = []
    for number, of_operand in enumerate(loops.windows):
        for dim, moving in of_operand.items():
            steps = steps_of(maps[number].results[dim]) or {}
            (factor,) = rule.operand_mappings[number].dim_mappings[dim].factor_indices
            if factor not in rule.permutation_factors or not set(steps) <= set(sizes):
                continue
            extent = 1 + sum(step * (sizes[loop] - 1) for loop, step in steps.items() if loop != moving)
            found.append(Window(number, dim, factor, steps[moving], extent))
    return tuple(found)


def mirrored_factors(op: Any, rule: OpShardingRule) -> frozenset[int]:
    """Returns the factors of the dimensions that a `stablehlo.reverse` reverses.

    Its partition rule exchanges even shards along them.
    """
    op = op.operation
    if op.name != "stablehlo.reverse":
        return frozenset()
    dims = rule.operand_mappings[0].dim_mappings
    return frozenset(factor for dim in elements(op.attributes["dimensions"]) for factor in dims[dim].factor_indices)


def _of_slice(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    offsets, strides = (op.attributes[name] for name in _SLICES[op.name])
    found = []
    for dim, of_dim in enumerate(rule.operand_mappings[0].dim_mappings):
        factors = of_dim.factor_indices
        is_known = offsets[dim] >= 0 and strides[dim] > 0
        if is_known and len(factors) == 1 and factors[0] in rule.permutation_factors:
            found.append(Window(0, dim, factors[0], strides[dim], 1, offsets[dim]))
    return tuple(found)


def _of_parts(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows of the operands with a permutation factor; each begins where the operand before ends."""
    dim = op.attributes["dimension"].value
    found, start = [], 0
    for number, (operand, mapping) in enumerate(zip(op.operands, rule.operand_mappings, strict=True)):
        (factor,) = mapping.dim_mappings[dim].factor_indices
        if factor in rule.permutation_factors:
            found.append(Window(number, dim, factor, 1, 1, -start, is_part=True))
        start += shape_of(operand.type)[dim]
    return tuple(found)


def _of_pad(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows of a pad; elements that are read in place of padding are replaced afterwards."""
    amounts = padding_of(op)
    if amounts is None or (op.name == "tensor.pad" and scalar_of_region(op) is None):
        return ()
    found = ((factor, dim_of(factor, rule.operand_mappings[0])) for factor in rule.permutation_factors)
    return tuple(Window(0, dim, factor, 1, 1, -amounts[dim][0]) for factor, dim in found if dim is not None)


def _of_stablehlo(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows of all windowed operands; elements that are read in place of padding are replaced before."""
    along = windows_along_dims(op)
    padded = {one.dim for one in along if one.is_padded}
    is_known = not padded or is_padding_neutral(op)
    return tuple(one for one in _along_factors(op, rule, along) if is_known or one.dim not in padded)


def windows_along_factors(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows of one of `WINDOWED` along permutation factors."""
    return _along_factors(op, rule, windows_along_dims(op))


def _along_factors(op: Any, rule: OpShardingRule, along: Sequence[DimWindows]) -> tuple[Window, ...]:
    found = []
    for one in along:
        factors = rule.result_mappings[0].dim_mappings[one.result_dim].factor_indices
        if len(factors) == 1 and factors[0] in rule.permutation_factors:
            geometry = one.stride, one.extent, -one.low, one.dilation
            found += [Window(number, one.dim, factors[0], *geometry) for number in range(len(op.results))]
    return tuple(found)


def _of_tosa(op: Any, rule: OpShardingRule) -> tuple[Window, ...]:
    """Returns the windows of convolutions and pools, except averages with padding, which do not count it."""
    padding, strides = elements(op.attributes["pad"]), elements(op.attributes["stride"])
    if op.name == "tosa.max_pool2d" and neutral_number(Combiner.MAX, op.operands[0].type.element_type) is None:
        return ()
    moved = _KERNEL_DIMS[op.name]
    found = []
    for factor in rule.permutation_factors:
        dim = dim_of(factor, rule.operand_mappings[0])
        if dim is None:
            continue
        low, high = padding[2 * dim - 2 : 2 * dim]
        if op.name == "tosa.avg_pool2d" and (low or high):
            continue
        if moved is None:
            extent = op.attributes["kernel"][dim - 1]
        else:
            extent = op.attributes["dilation"][dim - 1] * (shape_of(op.operands[1].type)[dim + moved] - 1) + 1
        found.append(Window(0, dim, factor, strides[dim - 1], extent, -low))
    return tuple(found)


_OF_OPS = {
    **dict.fromkeys(_SLICES, _of_slice),
    **dict.fromkeys(("tensor.pad", "tosa.pad"), _of_pad),
    **dict.fromkeys(_KERNEL_DIMS, _of_tosa),
    **dict.fromkeys(WINDOWED, _of_stablehlo),
    "stablehlo.concatenate": _of_parts,
}
