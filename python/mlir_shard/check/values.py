# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes, which are functions from integers to numbers, and values, which are nodes read at an affine index.

A node has a name for what it computes, and reads other nodes at indices that are affine in its variables. Equal nodes
are one object. A value tells for each device d and each local index i which element of which node is there. Where the
index is out of the bounds of the node, nothing is known of the element. The certified fact is always of this form, so a
global tensor is a value without mesh axes in its index, and a shard is one with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

Terms = tuple[tuple[int, Any], ...]
"""Products of a stride and a variable; they are added up."""
Entry = tuple[int, Terms]
"""An offset and terms: the index along one dimension of a node."""
Index = tuple[Entry, ...]
Read = tuple["Node", Index]
Bound = tuple[int | None, int | None]
"""The first index along a dimension and the one after the last; None where it is unbounded."""


MOVING = ("copy", "concatenate")
"""Nodes whose last variable is a position in what they read."""


_INTEGER = re.compile(r"(?:[us]?i(\d+)|index)$")
_INDEX_BITS = 64


def width(type_: str) -> int:
    """The bits of an integer type, 0 for another type and for booleans."""
    found = _INTEGER.match(type_)
    return 0 if found is None or found[1] == "1" else int(found[1] or _INDEX_BITS)


def fits(type_: str, low: int, high: int) -> bool:
    """Whether numbers are in an integer type, so that arithmetic on them does not wrap."""
    bits = width(type_)
    if not bits:
        return False
    return low >= 0 and high < 2**bits if type_[0] == "u" else -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1)


KINDS = {f"stablehlo.{name}": name for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")} | {
    "tosa.add": "add",
    "tosa.mul": "multiply",
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.mulf": "multiply",
    "arith.muli": "multiply",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.maxui": "maxui",
    "arith.minui": "minui",
}
"""The kinds of reductions by the ops that combine two numbers."""


IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or", "maxnum", "minnum", "maxui", "minui"))
# What changes nothing in a reduction.
NEUTRAL = {
    "add": ("0", "0.0", "-0.0"),
    "multiply": ("1", "1.0"),
    "maximum": ("-inf",),
    "minimum": ("inf",),
    "or": ("False", "0"),
    "xor": ("False", "0"),
    "and": ("True", "-1"),
}
ZEROS = ("0", "0.0", "False")


class NotCertified(Exception):
    """An op that the checker has no lemma for, or whose operands fit none. `lemma` names the one that failed."""

    def __init__(self, message: str, lemma: str = "") -> None:
        super().__init__(message)
        self.message, self.lemma = message, lemma


class Node:
    """A function of as many variables as it has bounds; further variables are bound, with a class each.

    Attributes:
        op: what it computes of what it reads, with all that matters for it.
        bounds: of the free variables; sizes: of the bound ones.
        place: of the op that made it first, for diagnostics.
        made: how many of the last free variables are positions in what the op makes, and so need not be read.
        padded: the variables along which it reads, at whatever distance, what a node is extended by.
    """

    __slots__ = ("bounds", "made", "number", "op", "padded", "place", "reads", "sizes")

    def __init__(
        self, op: tuple[Any, ...], bounds: tuple[Bound, ...], sizes: tuple[Any, ...], reads: tuple[Read, ...]
    ) -> None:
        self.op, self.bounds, self.sizes, self.reads = op, bounds, sizes, reads
        self.number, self.made = 0, 0
        self.place: Any = None
        self.padded: frozenset[int] = frozenset()


def parts_of(node: Node) -> tuple[int, ...]:
    """The sizes of the parts that a node concatenates; a copy has one."""
    return node.op[1:] if node.op[0] == "concatenate" else (node.bounds[-1][1] or 0,)


@dataclass(frozen=True, slots=True)
class Value:
    """A node, an index into it, and the dimensions of the local tensor.

    A dimension is a tuple of sizes, major to minor, of digits that are numbered through all dimensions; they are the
    variables of the index, beside the mesh axes, -1 for the first one.
    """

    node: Node
    index: Index
    dims: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The local shape."""
        return tuple(map(prod, self.dims))


def linear(terms: Iterable[tuple[int, Any]]) -> dict[Any, int]:
    """The stride of each variable."""
    found: dict[Any, int] = {}
    for stride, variable in terms:
        found[variable] = found.get(variable, 0) + stride
    return found


def entry_of(offset: int, strides: Mapping[Any, int]) -> Entry:
    """An index of an offset and strides, in its canonical order."""
    terms = [(stride, variable) for variable, stride in strides.items() if stride]
    terms.sort(key=lambda term: (-abs(term[0]), str(term[1])))
    return offset, tuple(terms)


def span(entry: Entry, size_of: Any) -> tuple[int, int]:
    """The least and the greatest value of an index."""
    low = high = entry[0]
    for stride, variable in entry[1]:
        reach = stride * (size_of(variable) - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def is_inside(entry: Entry, bound: Bound, size_of: Any) -> bool:
    """Whether an index is in bounds for all variables."""
    low, high = span(entry, size_of)
    return (bound[0] is None or bound[0] <= low) and (bound[1] is None or high < bound[1])


def substituted(entry: Entry, by: Mapping[Any, Entry]) -> Entry:
    """An index with variables replaced by indices."""
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
    """The coarsest factors of which all the lists, of one product, are products; None if there are none."""
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
    """An index as digits of these sizes, major to minor, of which each is affine; None if it has no such digits."""
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
