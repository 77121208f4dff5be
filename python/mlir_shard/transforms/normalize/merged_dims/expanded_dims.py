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

Expansion = tuple[tuple[int, ...], ...]
"""For each dimension the sizes of those that it is expanded into: the size itself where it is left as it is."""

Port = tuple[int, int]
"""An operand, from 0 on, or a result, from -1 down, and one of its dimensions."""

_OF_STABLEHLO, _OF_TOSA = "stablehlo.reshape", "tosa.reshape"
RESHAPES = frozenset({_OF_STABLEHLO, _OF_TOSA, "tensor.collapse_shape", "tensor.expand_shape"})


@dataclass(frozen=True)
class Expandable:
    """An op whose dimensions can be expanded.

    Attributes:
        factors: the dimensions that are expanded together; one that is in none of them cannot be expanded.
        attributes: the attributes that change, given the expansion of each operand and result by its number.
        stretched: those of `factors` that have size 1 for every size of the others, and become several of size 1.
        build: makes the results of expanded operands, given the expansions, where not by the same op.
    """

    factors: Sequence[Sequence[Port]]
    attributes: Callable[[Mapping[int, Expansion]], Mapping[str, Any]] = lambda _: {}
    stretched: frozenset[Port] = frozenset()
    build: Callable[[Sequence[Any], Mapping[int, Expansion]], list[Any]] | None = None


def cuts(shape: Sequence[int]) -> list[int]:
    """The numbers of elements in all leading dimensions up to each one."""
    return list(accumulate(shape, mul, initial=1))


def merged_dims(source: Sequence[int], target: Sequence[int]) -> Expansion | None:
    """Which dimensions, or parts of dimensions, of `source` each one of `target` merges; None if it merges none."""
    if 0 in target:
        return None
    known = sorted({*cuts(source), *cuts(target)})
    if any(after % before for before, after in pairwise(known)):
        return None
    expansion = []
    for start, end in pairwise(cuts(target)):
        inside = [place for place in known if start <= place <= end]
        expansion.append(tuple(after // before for before, after in pairwise(inside)) or (1,))
    return tuple(expansion) if any(len(sizes) > 1 for sizes in expansion) else None


def expanded_shape(expansion: Expansion) -> list[int]:
    """Returns the shape of an expanded tensor."""
    return [size for sizes in expansion for size in sizes]


def without_ones(shape: Sequence[int]) -> list[int]:
    """Returns the sizes other than 1, in which two shapes that differ in ones alone are equal."""
    return [size for size in shape if size != 1]


def places(expansion: Expansion) -> list[range]:
    """The dimensions that each dimension becomes."""
    starts = accumulate(map(len, expansion), initial=0)
    return [range(start, start + len(sizes)) for start, sizes in zip(starts, expansion, strict=False)]


def unexpanded(value: Any) -> Expansion:
    """Returns the expansion that leaves a tensor as it is."""
    return tuple((size,) for size in value.type.shape)


def reshaped(value: Any, shape: Sequence[int], kind: str) -> Any:
    """Returns a value with another shape of the same elements, by a reshape of the dialect of `kind`, one of RESHAPES.

    One of the shapes merges dimensions of the other.
    """
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
    type_, is_merging = stablehlo.with_shape(value.type, shape), len(shape) < value.type.rank
    groups = _groups(value.type.shape, shape) if is_merging else _groups(shape, value.type.shape)
    numbers = [ir.ArrayAttr.get([stablehlo.integer(dim) for dim in group]) for group in groups]
    attributes = {"reassociation": ir.ArrayAttr.get(numbers)}
    if not is_merging:
        attributes["static_output_shape"] = stablehlo.sizes(shape)
    name = "tensor.collapse_shape" if is_merging else "tensor.expand_shape"
    return ir.Operation.create(name, [type_], [value], attributes).results[0]


def _groups(parts: Sequence[int], wholes: Sequence[int]) -> list[list[int]]:
    """Which dimensions each one merges; those of size 1 go to the one before where nothing else takes them."""
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
