# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on affine indices: their ranges, digits of them, and other variables in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of

Index = tuple[Entry, ...]
Bound = tuple[int | None, int | None]
"""The first index along a dimension and the one after the last; None if it is unbounded."""


def linear(terms: Iterable[tuple[int, Any]]) -> dict[Any, int]:
    """Returns the stride of each variable."""
    found: dict[Any, int] = {}
    for stride, variable in terms:
        found[variable] = found.get(variable, 0) + stride
    return found


def span(entry: Entry, size_of: Any) -> tuple[int, int]:
    """Returns the least and the greatest value of an index."""
    low = high = entry[0]
    for stride, variable in entry[1]:
        reach = stride * (size_of(variable) - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def is_inside(entry: Entry, bound: Bound, size_of: Any) -> bool:
    """Returns whether an index is in bounds for all values of its variables."""
    low, high = span(entry, size_of)
    return (bound[0] is None or bound[0] <= low) and (bound[1] is None or high < bound[1])


def substituted(entry: Entry, by: Mapping[Any, Entry]) -> Entry:
    """Returns an index with variables replaced by indices."""
    offset, strides = entry[0], dict[Any, int]()
    for stride, variable in entry[1]:
        inner = by.get(variable)
        if inner is None:
            strides[variable] = strides.get(variable, 0) + stride
            continue
        offset += stride * inner[0]
        for one, other in inner[1]:
            strides[other] = strides.get(other, 0) + stride * one
    return entry_of(offset, strides)


def refined(*factors: Sequence[int]) -> tuple[int, ...] | None:
    """Returns the coarsest factors that refine all the lists, which have one product; None if no such factors exist."""
    first = factors[0]
    if all(tuple(one) == tuple(first) for one in factors):
        return tuple(first)
    cuts = {1}
    for sizes in factors:
        product = 1
        for size in reversed(sizes):
            product *= size
            cuts.add(product)
    ordered = sorted(cuts)
    if any(high % low for low, high in pairwise(ordered)):
        return None
    return tuple(high // low for low, high in pairwise(ordered))[::-1]


def split(entry: Entry, sizes: Sequence[int], size_of: Any) -> list[Entry] | None:
    """Returns an index as affine digits of these sizes, major to minor; None if it has no such digits."""
    found, strides, offset = list[Entry](), linear(entry[1]), entry[0]
    for place, size in enumerate(sizes):
        unit = prod(sizes[place + 1 :])
        taken = {variable: stride for variable, stride in strides.items() if abs(stride) >= unit}
        if any(stride % unit for stride in taken.values()):
            return None
        strides = {variable: stride for variable, stride in strides.items() if variable not in taken}
        head = entry_of(offset // unit, {variable: stride // unit for variable, stride in taken.items()})
        offset %= unit
        rest = span(entry_of(offset, strides), size_of)
        if not is_inside(head, (0, size), size_of) or rest[0] < 0 or rest[1] >= unit:
            return None
        found.append(head)
    return found
