# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation over a value graph until nothing changes.

The order of visits is that of Shardy's greedy driver: all nodes once from the top, then each node that a change
touched, last touched first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.propagate.value_graph import NOWHERE, UNKNOWN, Node, ValueGraph

States = tuple[int, ...]
# From the number of a kind and the states of a node's places their states afterwards, None where all stay.
Step = Callable[[int, States], "States | None"]


class Fixpoint:
    """Takes steps through the nodes of a graph; what a step gives is asked for, and remembered, by the step itself."""

    def __init__(self, graph: ValueGraph) -> None:
        self._graph = graph
        definers: list[int | None] = [None] * len(graph.states)
        users: list[list[int]] = [[] for _ in graph.states]
        for index, node in enumerate(graph.nodes):
            for place in dict.fromkeys(node.operands):
                users[place].append(index)
            for place in node.results:
                definers[place] = index
        # Around a place: the node it comes from, then those that use it, the last in the text first.
        self._around = [
            [] if place == NOWHERE else [*([] if definer is None else [definer]), *reversed(using)]
            for place, (definer, using) in enumerate(zip(definers, users, strict=True))
        ]

    def run(self, step: Step) -> None:
        """Brings the shardings of the graph to the fixpoint of `step`."""
        self._through(self._graph.returns, step)
        nodes = self._graph.nodes
        stack = list(reversed(range(len(nodes))))
        waiting = bytearray(b"\1") * len(nodes)
        while stack:
            index = stack.pop()
            waiting[index] = 0
            for place in self._visit(nodes[index], step):
                for other in self._around[place]:
                    if not waiting[other] and other != index:
                        waiting[other] = 1
                        stack.append(other)
        self._through(self._graph.returns, step)

    def _through(self, nodes: Iterable[Node], step: Step) -> None:
        for node in nodes:
            self._visit(node, step)

    def _visit(self, node: Node, step: Step) -> Sequence[int]:
        """Updates the states around a node; the places whose state is another one now."""
        states = self._graph.states
        places = node.places
        old = tuple([states[place] for place in places])
        new = step(node.kind, old)
        if new is None:
            return ()
        changed = []
        for place, before, after in zip(places, old, new, strict=True):
            # A place that the node has twice may change in one position and stay in the other.
            if after != before and place != NOWHERE:
                states[place] = after
                changed.append(place)
                changed += self._follow(place, after)
        return changed

    def _follow(self, place: int, state: int) -> list[int]:
        """Lets what is tied to a place follow its new state; the places that nodes have to be visited for."""
        graph = self._graph
        for sibling, rank in graph.siblings.get(place, ()):
            if graph.states[sibling] == UNKNOWN:
                graph.set_sharding(sibling, _open_like(graph.table[state], rank))
        followers = [member for member in graph.groups.get(place, ()) if member != place]
        for member in followers:
            graph.states[member] = state
        return followers


def _open_like(sharding: TensorSharding | None, rank: int) -> TensorSharding | None:
    return None if sharding is None else TensorSharding.fully_open(rank, sharding.mesh_or_ref)
