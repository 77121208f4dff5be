# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Value numbering of graphs, forward by the computations of nodes, and backward by their uses.

Forward, nodes agree if they are of one kind and their operands agree; backward, if they are of one kind and their
results are used by nodes that agree. Annotations count in neither. A node that belongs to its uses has no backward
number: its uses count as uses of its operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir_shard.explain.difference.graph import Graph, Node, Numbers, Root

Keys = Mapping[Node, object]
"""Keys that distinguish the arguments or results of a function, in both programs."""

_UNKNOWN = -1


class Numbering:
    """The numbers of the nodes of one graph; those of graphs with the same `numbers` can be compared."""

    def __init__(self, graph: Graph, numbers: Numbers) -> None:
        self._graph, self._numbers = graph, numbers
        self.forward = [_UNKNOWN] * len(graph.nodes)
        self.backward = [_UNKNOWN] * len(graph.nodes)
        self._made = [_UNKNOWN] * len(graph.definers)
        self._uses: dict[int, list[int]] = {}

    def number_forward(self, root: Root, arguments: Keys) -> None:
        """Numbers the nodes of a function by their computations."""
        for node in root.arguments:
            number = self._numbers.of(("argument", arguments[node]))
            self.forward[node.index] = self._made[node.results[0]] = number
        self._forward([node for node in root.nodes if node not in arguments])

    def number_backward(self, root: Root, results: Keys) -> None:
        """Numbers the nodes of a function by their uses."""
        for node in root.results:
            number = self.backward[node.index] = self._numbers.of(("result", results[node]))
            self._uses.setdefault(node.operands[0], []).append(number)
        self._backward([node for node in root.nodes if node not in results], _UNKNOWN)
        for node in root.nodes:
            self._annotated(node)

    def content(self, root: Root) -> int:
        """Returns the number of the computation of a function."""
        return self._numbers.of(("function", *sorted(self.forward[node.index] for node in root.nodes)))

    def used(self, value: int) -> int:
        """Returns the number of the uses of a value; the nodes that use it must be numbered backward."""
        return self._numbers.of(("used", *sorted(self._uses.get(value, ()))))

    def _forward(self, nodes: Sequence[Node]) -> None:
        made, of = self._made, self._numbers.of
        for node in nodes:
            key: tuple[int, ...] = (node.kind, node.block, *[made[value] for value in node.operands])
            if node.inner:
                for position, value in enumerate(node.arguments):
                    made[value] = of(("argument of a region", position))
                self._forward(node.inner)
                key = (*key, _UNKNOWN, *sorted(self.forward[inner.index] for inner in node.inner))
            number = self.forward[node.index] = of(key)
            if len(node.results) == 1:
                made[node.results[0]] = number
            else:
                for position, value in enumerate(node.results):
                    made[value] = of(("result", number, position))

    def _backward(self, nodes: Sequence[Node], around: int) -> None:
        of, uses = self._numbers.of, self._uses
        for node in reversed(nodes):
            if node.is_annotation:
                continue
            if node.is_by_use:
                passed = [of((node.kind, use)) for value in node.results for use in uses.get(value, ())]
                for value in node.operands if passed else ():
                    uses.setdefault(value, []).extend(passed)
                continue
            used = [self.used(value) for value in node.results] or [around]
            number = self.backward[node.index] = of((node.kind, node.block, *used))
            if node.inner:
                self._backward(node.inner, number)
            for position, value in enumerate(node.operands):
                uses.setdefault(value, []).append(of((number, position)))

    def _annotated(self, node: Node) -> None:
        if node.is_annotation:
            self.backward[node.index] = self._numbers.of((node.kind, *map(self.used, node.operands)))
        for inner in node.inner:
            self._annotated(inner)
