# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes, which are functions from integers to numbers, and values, which are nodes read at an affine index.

A node has a name for its op, and reads other nodes at indices that are affine in its variables. Equal nodes are one
object. A value gives, for each device d and each local index i, the element of the node at that index. If the index is
out of the bounds of the node, the element is unknown. A certified fact always has this form: a global tensor is a value
without mesh axes in its index, and a shard is a value with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.check.lemmas.indices import Bound, Index

Read = tuple["Node", Index]
MOVING = ("copy", "concatenate")
"""Ops of nodes whose last variable is a position in their operands."""


class Node:
    """A function of as many variables as it has bounds; further variables are bound, with a class each.

    Attributes:
        op: its op on the nodes that it reads, with everything that affects the result.
        bounds: the bounds of the free variables; sizes: the classes and sizes of the bound ones.
        place: the op that made it first, for diagnostics.
        made: the number of last free variables that are positions in new dimensions of the op, and so need not be read.
        padded: the variables along which it reads the extension of a node, directly or through other nodes.
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
    """Returns the sizes of the parts that a node concatenates; a copy has one part."""
    return node.op[1:] if node.op[0] == "concatenate" else (node.bounds[-1][1] or 0,)


@dataclass(frozen=True, slots=True)
class Value:
    """A node, an index into it, and the dimensions of the local tensor.

    A dimension is a tuple of the sizes of its digits, major to minor. The digits are numbered through all dimensions;
    these numbers, and those of the mesh axes from -1 down, are the variables of the index.
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
