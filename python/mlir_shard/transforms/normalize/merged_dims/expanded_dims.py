# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes with dimensions that are expanded into several, and the reshapes from and to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

from mlir_shard.deferred import numpy as np
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.operator.reshape import reshape_groups

Expansion = tuple[tuple[int, ...], ...]
"""For each dimension, the sizes of the dimensions that it is expanded into; only its own if it is not expanded."""

Port = tuple[int, int]
"""The number of an operand, from 0 on, or of a result, from -1 down, and one of its dimensions."""

_OF_STABLEHLO, _OF_TOSA = "stablehlo.reshape", "tosa.reshape"
RESHAPES = frozenset({_OF_STABLEHLO, _OF_TOSA, "tensor.collapse_shape", "tensor.expand_shape"})


@dataclass(frozen=True)
class Expandable:
    """An op whose dimensions can be expanded.

    Attributes:
        factors: the dimensions that are expanded together; a dimension in none of them cannot be expanded.
        attributes: returns the attributes that change, given the expansion of each operand and result by its number.
        stretched: the ports of `factors` whose size 1 is broadcast to that of the others; they expand to sizes of 1.
        build: builds the results from expanded operands, given the expansions; None if the same op computes them.
    """

    factors: Sequence[Sequence[Port]]
    attributes: Callable[[Mapping[int, Expansion]], Mapping[str, Any]] = lambda _: {}
    stretched: frozenset[Port] = frozenset()
    build: Callable[[Sequence[Any], Mapping[int, Expansion]], list[Any]] | None = None


def cuts(shape: Sequence[int]) -> list[int]:
    """Returns the products of the leading sizes: from 1, of no dimension, to the number of elements."""
    return list(accumulate(shape, mul, initial=1))


def merged_dims(source: Sequence[int], target: Sequence[int]) -> Expansion | None:
    """Returns the dimensions, or parts, of `source` that each one of `target` merges; None if none are merged."""
    if 0 in target:
        return None
    expansion: list[tuple[int, ...]] = []
    for group in reshape_groups(source, target):
        expansion += _merged_in_group(group.operand_sizes, group.result_sizes)
    return tuple(expansion) if any(len(sizes) > 1 for sizes in expansion) else None


def _merged_in_group(source: Sequence[int], target: Sequence[int]) -> Expansion:
    known = sorted({*cuts(source), *cuts(target)})
    if any(after % before for before, after in pairwise(known)):
        return tuple((size,) for size in target)
    expansion = []
    for start, end in pairwise(cuts(target)):
        inside = [place for place in known if start <= place <= end]
        expansion.append(tuple(after // before for before, after in pairwise(inside)) or (1,))
    return tuple(expansion)


def expanded_shape(expansion: Expansion) -> list[int]:
    """Returns the shape of an expanded tensor."""
    return [size for sizes in expansion for size in sizes]


def without_ones(shape: Sequence[int]) -> list[int]:
    """Returns the sizes other than 1, which are equal for shapes that differ only in dimensions of size 1."""
    return [size for size in shape if size != 1]


def places(expansion: Expansion) -> list[range]:
    """Returns the expanded dimensions of each dimension."""
    starts = accumulate(map(len, expansion), initial=0)
    return [range(start, start + len(sizes)) for start, sizes in zip(starts, expansion, strict=False)]


def unexpanded(value: Any) -> Expansion:
    """Returns the expansion that leaves a tensor as it is."""
    return tuple((size,) for size in value.type.shape)


def reshaped(value: Any, shape: Sequence[int], kind: str) -> Any:
    """Returns a value with another shape of the same elements, by reshapes named `kind`, or of its dialect."""
    if value.type.shape == [*shape]:
        return value
    if kind == _OF_STABLEHLO:
        return stablehlo.reshape(value, shape)
    if kind == _OF_TOSA:
        sizes = ir.DenseElementsAttr.get(np.array(shape, np.int64), type=ir.IndexType.get())
        made = ir.Operation.create(
            "tosa.const_shape", [ir.Type.parse(f"!tosa.shape<{len(shape)}>")], attributes={"values": sizes}
        )
        type_ = stablehlo.with_shape(value.type, shape)
        return ir.Operation.create(_OF_TOSA, [type_], [value, made.result]).results[0]
    middle = _between(value.type.shape, shape)
    if middle is not None:
        return reshaped(reshaped(value, middle, kind), shape, kind)
    type_, is_merging = stablehlo.with_shape(value.type, shape), len(shape) < value.type.rank
    groups = _groups(value.type.shape, shape) if is_merging else _groups(shape, value.type.shape)
    numbers = [ir.ArrayAttr.get([stablehlo.integer(dim) for dim in group]) for group in groups]
    attributes = {"reassociation": ir.ArrayAttr.get(numbers)}
    if not is_merging:
        attributes["static_output_shape"] = stablehlo.sizes(shape)
    name = "tensor.collapse_shape" if is_merging else "tensor.expand_shape"
    return ir.Operation.create(name, [type_], [value], attributes).results[0]


def _between(source: Sequence[int], target: Sequence[int]) -> list[int] | None:
    """Returns the shape between an expansion and a collapse, or the other way around; None if one of them suffices."""
    before, after = {*cuts(source)}, {*cuts(target)}
    if before <= after or after <= before:
        return None
    known = sorted(before | after)
    if any(high % low for low, high in pairwise(known)):
        known = sorted(before & after)
    return [high // low for low, high in pairwise(known)]


def _groups(parts: Sequence[int], wholes: Sequence[int]) -> list[list[int]]:
    """Returns the dimensions that each one merges; surplus ones of size 1 belong to the group before them."""
    groups: list[list[int]] = []
    left = list(enumerate(parts))
    for index, size in enumerate(wholes):
        group: list[int] = []
        product = 1
        while left and (product < size or not group):
            dim, part = left.pop(0)
            group.append(dim)
            product *= part
        while left and left[0][1] == 1 and len(left) > len(wholes) - index - 1:
            group.append(left.pop(0)[0])
        groups.append(group)
    return groups
