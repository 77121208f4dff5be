# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes, which are functions from integers to numbers, and values, which are nodes read at an affine index.

A node has a name for what it computes, and reads other nodes at indices that are affine in its variables. Equal nodes
are one object. A value tells for each device d and each local index i which element of which node is there. Where the
index is out of the bounds of the node, nothing is known of the element. The certified fact is always of this form, so a
global tensor is a value without mesh axes in its index, and a shard is one with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.check.lemmas.indices import Bound, Index

Read = tuple["Node", Index]
MOVING = ("copy", "concatenate")
"""Nodes whose last variable is a position in what they read."""


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

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)
