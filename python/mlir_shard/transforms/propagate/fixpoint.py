# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation over a value graph until nothing changes.

The order of visits is that of Shardy's greedy driver: all nodes once from the top, then each node that a change
touched, last touched first. That one looks for the edge of a block argument of a computation at the operand, where
there is none, and so does not come back to it; here these edges wait until nothing else is left, so that what Shardy
finds is found in the same order, and then what it misses. What the main function returns is tied to the shardings of
its results before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir_shard import _native
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.propagate.value_graph import NOWHERE, ValueGraph

States = tuple[int, ...]
# From the number of a behaviour and the states of a node's places their states afterwards, None where all stay.
Step = Callable[[int, States], "States | None"]


class Fixpoint:
    """Takes steps through the nodes of a graph, which does not change but in its states.

    A step is asked once for each distinct input, in all runs together.
    """

    def __init__(self, graph: ValueGraph) -> None:
        self._graph = graph
        tied = {*graph.siblings, *graph.groups}
        nodes, returns = graph.nodes.native, graph.returns.native
        patient = [number for number, kind in enumerate(graph.kinds) if kind.is_patient]
        self._native = _native.Fixpoint(nodes, returns, len(graph.states), NOWHERE, sorted(tied), patient)

    def run(self, behaviours: Sequence[int], step: Step) -> None:
        """Brings the shardings of the graph to the fixpoint of `step`, the behaviour of each kind given."""
        self._native.run(
            self._graph.states, behaviours, lambda behaviour, before: step(behaviour, tuple(before)), self._follow
        )

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
