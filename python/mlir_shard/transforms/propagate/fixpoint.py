# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation over a value graph until nothing changes.

The order of visits is that of Shardy's greedy driver: all nodes once from the top, then each node that a change
touched, last touched first.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir_shard import _native
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.propagate.value_graph import NOWHERE, UNKNOWN, ValueGraph

States = tuple[int, ...]
# From the number of a kind and the states of a node's places their states afterwards, None where all stay.
Step = Callable[[int, States], "States | None"]


class Fixpoint:
    """Takes steps through the nodes of a graph; what a step gives is asked for, and remembered, by the step itself."""

    def __init__(self, graph: ValueGraph) -> None:
        self._graph = graph
        tied = {*graph.siblings, *graph.groups}
        self._native = _native.Fixpoint(len(graph.states), NOWHERE, sorted(tied))
        for node in graph.nodes:
            self._native.add(node.kind, node.operands, node.results)

    def run(self, step: Step) -> None:
        """Brings the shardings of the graph to the fixpoint of `step`."""
        self._through_returns(step)
        states = self._graph.states
        states[:] = self._native.run(states, lambda kind, before: step(kind, tuple(before)), self._follow)
        self._through_returns(step)

    def _through_returns(self, step: Step) -> None:
        states = self._graph.states
        for node in self._graph.returns:
            places = node.places
            old = tuple([states[place] for place in places])
            for place, before, after in zip(places, old, step(node.kind, old) or old, strict=True):
                if after != before and place != NOWHERE:
                    states[place] = after
                    for other, state, only_if_unknown, _ in self._follow(place, after):
                        if not only_if_unknown or states[other] == UNKNOWN:
                            states[other] = state

    def _follow(self, place: int, state: int) -> list[tuple[int, int, bool, bool]]:
        """What the places tied to one do when its state changes: siblings without a sharding become open, and members
        of its group take it over."""
        graph = self._graph
        sharding = graph.table[state]
        opened = [
            (sibling, graph.table.number(_open_like(sharding, rank)), True, False)
            for sibling, rank in graph.siblings.get(place, ())
        ]
        return opened + [(member, state, False, True) for member in graph.groups.get(place, ()) if member != place]


def _open_like(sharding: TensorSharding | None, rank: int) -> TensorSharding | None:
    return None if sharding is None else TensorSharding.fully_open(rank, sharding.mesh_or_ref)
