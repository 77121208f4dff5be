# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pairs nodes whose neighbours are paired, to match the parts of a program after an edit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import IntEnum

from mlir_shard.explain.difference.graph import Node
from mlir_shard.explain.difference.pairs import Pair, Pairs, take_in_order, take_unique


class Level(IntEnum):
    """The criterion for pairing neighbours of a pair, the most reliable one first."""

    ONLY_OF_KIND = 0
    ONLY_OF_NAME = 1
    FIRST_OF_KIND = 2
    FIRST_OF_NAME = 3

    @property
    def is_by_name(self) -> bool:
        """Whether types and attributes may differ."""
        return self in (Level.ONLY_OF_NAME, Level.FIRST_OF_NAME)

    @property
    def is_in_order(self) -> bool:
        """Whether the first of several candidates are paired."""
        return self in (Level.FIRST_OF_KIND, Level.FIRST_OF_NAME)


def spread(pairs: Pairs) -> None:
    """Adds pairs of nodes with paired neighbours until no more are found, then pairs annotations of the same value."""
    for level in Level:
        left = _frontier(pairs)
        while left:
            one, other = left.pop()
            for at in range(level + 1):
                found = list(_neighbours(pairs, one, other, Level(at)))
                if found:
                    left += [(one, other), *found]
                    break
    _add_annotations(pairs)


def _add_annotations(pairs: Pairs) -> None:
    """Pairs annotations of one kind that have a matching operand."""
    left, right = (
        [node for node in pairs.left(side, graph.nodes) if node.is_annotation]
        for side, graph in enumerate(pairs.graphs)
    )
    for number in range(max((len(node.operands) for node in left), default=0)):

        def key(side: int, node: Node, number: int = number) -> Hashable | None:
            if number >= len(node.operands):
                return None
            definer = pairs.graphs[side].definers[node.operands[number]]
            if definer is not None and definer.is_by_use:
                return node.kind, True, pairs.computed(side, definer)
            value = node.operands[number]
            return node.kind, False, value if side else pairs.values.get(value, -1)

        for pair in take_in_order(left, right, key):
            pairs.add(*pair)


def _frontier(pairs: Pairs) -> list[Pair]:
    """Returns the pairs next to unpaired nodes of the first graph."""
    graph = pairs.graphs[0]
    found: dict[Node, None] = {}
    for node in pairs.left(0, graph.nodes):
        beside = [definer for value in node.operands if (definer := graph.definers[value])]
        beside += [user for value in node.results for user, _ in graph.users.get(value, ())]
        beside += [node.parent] if node.parent else []
        found.update((one, None) for one in beside if one in pairs.after)
    return [(one, pairs.after[one]) for one in found]


def _neighbours(pairs: Pairs, one: Node, other: Node, level: Level) -> Iterator[Pair]:
    """Adds pairs of neighbours of a pair; yields them and the pairs inside them."""
    before, after = pairs.graphs
    for value, of_other in zip(one.operands, other.operands, strict=False):
        left, right = before.definers[value], after.definers[of_other]
        if left and right and left.results.index(value) == right.results.index(of_other):
            yield from _added(pairs, [(left, right)], level)
    values = [*zip(one.results, other.results, strict=False), *zip(one.arguments, other.arguments, strict=False)]
    if one.inner and other.inner:
        values += _captured(pairs, one)
        yield from _added(pairs, _ends(one.inner, other.inner), level)
    for value, of_other in values:
        yield from _users(pairs, value, of_other, level)


def _captured(pairs: Pairs, node: Node) -> Iterator[tuple[int, int]]:
    """Returns the values used in the regions of a node that match a value of the other graph, each with that value."""
    values = dict.fromkeys(value for inner in _all(node.inner) for value in inner.operands)
    return ((value, pairs.values[value]) for value in values if value in pairs.values)


def _all(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _all(node.inner)


def _ends(nodes: Sequence[Node], others: Sequence[Node]) -> list[Pair]:
    """Returns the pairs of the last nodes of each block."""
    ends, of_others = ({node.block: node for node in side} for side in (nodes, others))
    return [(node, of_others[block]) for block, node in ends.items() if block in of_others]


def _users(pairs: Pairs, value: int, of_other: int, level: Level) -> Iterator[Pair]:
    """Adds pairs of users of one kind that use a value as the same operand: users that are unique together with their
    computations, with their own uses, or by themselves, then users in order if the level allows it."""
    users = [graph.users.get(one, ()) for graph, one in zip(pairs.graphs, (value, of_other), strict=True)]
    known = (pairs.after, pairs.before)
    left, right = (
        [use for use in users[side] if use[0] not in known[side] and not use[0].is_by_use] for side in (0, 1)
    )
    if not left or not right:
        return
    numberings = pairs.numberings

    def kind(side: int, use: tuple[Node, int]) -> tuple[int, ...]:
        node, position = use
        return node.loose_kind if level.is_by_name else node.kind, position, node.block

    def forward(side: int, use: tuple[Node, int]) -> tuple[int, ...]:
        return *kind(side, use), numberings[side].forward[use[0].index]

    def backward(side: int, use: tuple[Node, int]) -> tuple[int, ...]:
        return *kind(side, use), numberings[side].backward[use[0].index]

    found = [pair for key in (forward, backward, kind) for pair in take_unique(left, right, key)]
    if level.is_in_order:
        found += take_in_order(left, right, kind)
    yield from _added(pairs, [(one[0], other[0]) for one, other in found], level)


def _added(pairs: Pairs, candidates: Iterable[Pair], level: Level) -> Iterator[Pair]:
    for one, other in candidates:
        if not _may_pair(pairs, one, other, level):
            continue
        pairs.add(one, other)
        yield one, other
        if one.inner and other.inner:
            yield from pairs.add_equal(one.inner, other.inner)


def _may_pair(pairs: Pairs, one: Node, other: Node, level: Level) -> bool:
    if one in pairs.after or other in pairs.before or one.is_by_use or other.is_by_use or one.block != other.block:
        return False
    around = None if one.parent is None else pairs.after.get(one.parent)
    if around is not other.parent or (one.parent is not None and around is None):
        return False
    return one.loose_kind == other.loose_kind if level.is_by_name else one.kind == other.kind
