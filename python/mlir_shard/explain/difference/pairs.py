# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pairs of nodes of two graphs, and functions that pair the members of two lists by keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from mlir_shard.explain.difference.graph import Graph, Node, Numbers
from mlir_shard.explain.difference.numbering import Numbering

Pair = tuple[Node, Node]
Member = TypeVar("Member")
Key = Callable[[int, Member], Hashable | None]
"""A function from the number of a list, 0 or 1, and a member of it to a key; None equals no other key."""


def take_in_order(left: list[Member], right: list[Member], key: Key[Member]) -> list[tuple[Member, Member]]:
    """Removes members with equal keys from two lists, and returns them in pairs, in order."""
    known: dict[Hashable, list[Member]] = defaultdict(list)
    for member in right:
        known[key(1, member)].append(member)
    return _take(left, right, [(member, known[key(0, member)]) for member in left if key(0, member) is not None])


def take_unique(left: list[Member], right: list[Member], key: Key[Member]) -> list[tuple[Member, Member]]:
    """Removes members from two lists if no other member of either list has their key, and returns them in pairs."""
    sides: list[dict[Hashable, list[Member]]] = [defaultdict(list), defaultdict(list)]
    for side, members in enumerate((left, right)):
        for member in members:
            sides[side][key(side, member)].append(member)
    candidates = [
        (members[0], sides[1][of])
        for of, members in sides[0].items()
        if of is not None and len(members) == len(sides[1].get(of, ())) == 1
    ]
    return _take(left, right, candidates)


def _take(
    left: list[Member], right: list[Member], candidates: Iterable[tuple[Member, list[Member]]]
) -> list[tuple[Member, Member]]:
    found = [(member, others.pop(0)) for member, others in candidates if others]
    taken = {id(member) for pair in found for member in pair}
    left[:] = [member for member in left if id(member) not in taken]
    right[:] = [member for member in right if id(member) not in taken]
    return found


class Pairs:
    """The matched nodes of two graphs, with their values."""

    def __init__(self, before: Graph, after: Graph) -> None:
        self.graphs = before, after
        numbers = Numbers()
        self.numberings = Numbering(before, numbers), Numbering(after, numbers)
        self.after: dict[Node, Node] = {}
        self.before: dict[Node, Node] = {}
        self.values: dict[int, int] = {}

    def add(self, one: Node, other: Node) -> None:
        """Adds a pair of nodes."""
        self.after[one], self.before[other] = other, one
        self.values.update(zip(one.results, other.results, strict=False))
        self.values.update(zip(one.arguments, other.arguments, strict=False))

    def left(self, side: int, nodes: Iterable[Node]) -> list[Node]:
        """Returns the nodes of a graph that are in no pair and do not belong to their uses."""
        known = self.before if side else self.after
        return [node for node in nodes if node not in known and not node.is_by_use]

    def add_equal(self, nodes: Sequence[Node], others: Sequence[Node]) -> list[Pair]:
        """Pairs nodes of two blocks that agree forward and backward, or in one of these; returns the pairs, and those
        inside of them. If the programs have different numbers of such nodes, these are not paired."""
        found: list[Pair] = []
        for key in (self._both, self.computed, self._backward):
            found += self._add_classes(nodes, others, key)
        for one, other in list(found):
            if one.inner:
                found += self.add_equal(one.inner, other.inner)
        return found

    def add_repeated(self, nodes: Sequence[Node], others: Sequence[Node]) -> list[Pair]:
        """Pairs nodes with equal computations, of which one program has more than the other."""
        left, right = self.left(0, nodes), self.left(1, others)
        found = take_in_order(left, right, self.computed)
        for pair in found:
            self.add(*pair)
        return found

    def _both(self, side: int, node: Node) -> Hashable:
        return self.computed(side, node), self._backward(side, node)

    def computed(self, side: int, node: Node) -> int:
        """Returns the number of the computation of a node of a graph."""
        return self.numberings[side].forward[node.index]

    def _backward(self, side: int, node: Node) -> int:
        return self.numberings[side].backward[node.index]

    def _add_classes(self, nodes: Sequence[Node], others: Sequence[Node], key: Key[Node]) -> list[Pair]:
        left, right = self.left(0, nodes), self.left(1, others)
        if not left or not right:
            return []
        classes: dict[Hashable, tuple[list[Node], list[Node]]] = {}
        for side, members in enumerate((left, right)):
            for node in members:
                classes.setdefault(key(side, node), ([], []))[side].append(node)
        found: list[Pair] = []
        for one, other in classes.values():
            if len(one) == len(other):
                pairs = [(one[0], other[0])] if len(one) == 1 else self._closest(one, other)
                for pair in pairs:
                    self.add(*pair)
                found += pairs
        return found

    def _closest(self, left: list[Node], right: list[Node]) -> list[Pair]:
        """Pairs indistinguishable nodes so that shardings differ least, and operands match if possible."""
        found: list[Pair] = []
        for key in (self._shardings_and_operands, self._shardings, self._operands, _nothing):
            found += take_in_order(left, right, key)
        return found

    def _shardings_and_operands(self, side: int, node: Node) -> Hashable:
        return self._shardings(side, node), self._operands(side, node)

    def _shardings(self, side: int, node: Node) -> Hashable:
        definers = (self.graphs[side].definers[value] for value in node.operands)
        by_use = [definer.shardings if definer and definer.is_by_use else () for definer in definers]
        return node.shardings, tuple(by_use)

    def _operands(self, side: int, node: Node) -> Hashable:
        return node.operands if side else tuple(self.values.get(value, -1) for value in node.operands)


def _nothing(side: int, node: Node) -> Hashable:
    return ()
