# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matches nodes of two graphs by their computations and by their uses, not by name or order.

Nodes that agree in both are matched first, then nodes that agree in one of them. In edited parts of the programs, the
remaining nodes are matched from their neighbours, see `spreading`. Indistinguishable nodes are matched so that their
shardings differ least.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from mlir_shard.explain.difference.graph import Graph, Node, Numbers, Root
from mlir_shard.explain.difference.numbering import Numbering
from mlir_shard.explain.difference.pairs import Pair, Pairs, take_in_order, take_unique
from mlir_shard.explain.difference.spreading import spread


@dataclass(frozen=True, slots=True)
class Matching:
    """The matching nodes of two graphs, and the nodes of each graph without a match.

    `by_use` has the pairs of nodes that belong to their uses: the definers of the operands of matching nodes. One
    program may have more of them than the other.
    """

    pairs: tuple[Pair, ...]
    by_use: tuple[Pair, ...]
    only_before: tuple[Node, ...]
    only_after: tuple[Node, ...]


def match(before: Graph, after: Graph) -> Matching:
    """Matches the nodes of two graphs that were read with the same numbers of kinds."""
    pairs = Pairs(before, after)
    roots = _paired_roots(before, after)
    for one, other in roots:
        _match_function(pairs, one, other)
    if all(pairs.left(side, graph.nodes) for side, graph in enumerate(pairs.graphs)):
        spread(pairs)
        for one, other in roots:
            pairs.add_repeated(one.nodes, other.nodes)
    by_use, only_before, only_after = _by_use(pairs)
    return Matching(
        tuple(pairs.after.items()),
        tuple(by_use),
        (*pairs.left(0, before.nodes), *only_before),
        (*pairs.left(1, after.nodes), *only_after),
    )


def _paired_roots(before: Graph, after: Graph) -> list[tuple[Root, Root]]:
    """Returns the matching functions of two modules: by contents and name, by contents, by name, and then in order."""
    # The operations outside of functions come last.
    found = [(before.roots[-1], after.roots[-1])]
    left, right = before.roots[:-1], after.roots[:-1]
    if len(left) == len(right) == 1:
        return [*found, (left[0], right[0])]
    numbers = Numbers()
    contents: dict[Root, int] = {}
    for graph in (before, after):
        numbering = Numbering(graph, numbers)
        for root in graph.roots:
            numbering.number_forward(root, {node: node.position for node in root.arguments})
            contents[root] = numbering.content(root)

    def content_and_name(side: int, root: Root) -> Hashable:
        return contents[root], root.name

    def content(side: int, root: Root) -> Hashable:
        return contents[root]

    def name(side: int, root: Root) -> Hashable:
        return root.name

    def nothing(side: int, root: Root) -> Hashable:
        return ()

    for key in (content_and_name, content, name, nothing):
        found += take_in_order(left, right, key)
    return found


def _match_function(pairs: Pairs, one: Root, other: Root) -> None:
    """Matches the nodes that agree in two functions."""
    for root, numbering in zip((one, other), pairs.numberings, strict=True):
        numbering.number_backward(root, {node: node.position for node in root.results})
    arguments = _arguments(pairs, one, other)
    for side, root in enumerate((one, other)):
        keys: dict[Node, object] = {node: (side, node.index) for node in root.arguments}
        keys.update((pair[side], number) for number, pair in enumerate(arguments))
        pairs.numberings[side].number_forward(root, keys)
    for pair in [*arguments, *zip(one.results, other.results, strict=False)]:
        pairs.add(*pair)
    pairs.add_equal(one.nodes, other.nodes)


def _arguments(pairs: Pairs, one: Root, other: Root) -> list[Pair]:
    """Returns the matching arguments: those of equal uses and positions, of equal uses and names, of equal uses, then
    those of equal names, then the others by position."""
    roots = (one, other)

    def used(side: int, node: Node) -> tuple[Hashable, ...]:
        return node.kind, pairs.numberings[side].used(node.results[0])

    def used_at_place(side: int, node: Node) -> Hashable:
        return *used(side, node), node.position

    def used_by_name(side: int, node: Node) -> Hashable:
        return *used(side, node), roots[side].names[node.position]

    def name(side: int, node: Node) -> Hashable | None:
        return roots[side].names[node.position] or None

    def place(side: int, node: Node) -> Hashable:
        return node.kind, node.position

    left, right = list(one.arguments), list(other.arguments)
    found = [pair for key in (used_at_place, used_by_name, used, name) for pair in take_unique(left, right, key)]
    if len(left) != len(right):
        return found + take_unique(left, right, place)
    return found + list(zip(left, right, strict=True))


def _by_use(pairs: Pairs) -> tuple[list[Pair], list[Node], list[Node]]:
    """Returns the pairs of nodes that belong to their uses, and such nodes of each graph that have no match."""
    found = _used_in_pairs(pairs)
    known = {node for pair in found for node in pair}
    left, right = (
        [node for node in graph.nodes if _is_by_itself(node) and node not in known] for graph in pairs.graphs
    )
    # Nodes without uses.
    found += take_in_order(left, right, pairs.computed)
    computed = [
        {pairs.computed(side, node) for node in graph.nodes if node.is_by_use}
        for side, graph in enumerate(pairs.graphs)
    ]
    left = [node for node in left if pairs.computed(0, node) not in computed[1]]
    right = [node for node in right if pairs.computed(1, node) not in computed[0]]
    found += take_in_order(left, right, lambda side, node: node.kind)
    return found, left, right


def _is_by_itself(node: Node) -> bool:
    return node.is_by_use and (node.parent is None or not node.parent.is_by_use)


def _used_in_pairs(pairs: Pairs) -> list[Pair]:
    before, after = (graph.definers for graph in pairs.graphs)
    found: dict[Pair, None] = {}
    left = list(pairs.after.items())
    while left:
        one, other = left.pop()
        for value, of_other in zip(one.operands, other.operands, strict=False):
            definer, of_same = before[value], after[of_other]
            if not definer or not of_same or not definer.is_by_use or not of_same.is_by_use:
                continue
            if definer.loose_kind == of_same.loose_kind and (definer, of_same) not in found:
                found[definer, of_same] = None
                left.append((definer, of_same))
    return list(found)
