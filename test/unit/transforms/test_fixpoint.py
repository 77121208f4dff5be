# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of fixpoints over small graphs: places tied to a changed place are updated, and adjacent nodes visited."""

from __future__ import annotations

from array import array

import pytest
from sharding.texts import sharding, text_of

from mlir_shard.sharding import Mesh, OpShardingRule
from mlir_shard.transforms.propagate.phases import STRATEGIES, Plan, disagreeing_groups, propagate
from mlir_shard.transforms.propagate.value_graph import NOWHERE, STATE_TYPE, UNKNOWN, Node, NodeKind, ValueGraph

IDENTITY = OpShardingRule.pointwise((8,), 1)


@pytest.fixture
def graph() -> ValueGraph:
    return ValueGraph({"mesh": Mesh({"a": 2, "b": 2}.items())})


def run(graph: ValueGraph, edges: list[tuple[int, int]], states: dict[int, str], count: int) -> list[str | None]:
    """Returns the shardings of places 1 to `count` after propagation through identities from place to place."""
    kind = graph.kind(NodeKind(IDENTITY))
    for source, target in edges:
        graph.nodes.append(Node(kind, (source,), (target,)))
    graph.states = array(STATE_TYPE, [UNKNOWN] * (count + 1))
    for place, text in states.items():
        graph.set_sharding(place, sharding(text))
    propagate(graph, Plan(STRATEGIES["basic"]))
    found = (graph.sharding(place) for place in range(1, count + 1))
    return [None if one is None else text_of(one) for one in found]


def test_both_ways_along_a_chain(graph: ValueGraph) -> None:
    edges = [(1, 2), (2, 3), (3, 4)]
    assert run(graph, edges, {3: '[{"a"}]'}, 4) == ['[{"a", ?}]', '[{"a", ?}]', '[{"a"}]', '[{"a", ?}]']


def test_nothing_goes_through_nowhere(graph: ValueGraph) -> None:
    assert run(graph, [(1, NOWHERE), (NOWHERE, 2)], {1: '[{"a"}]'}, 2) == ['[{"a"}]', None]


def test_a_group_follows_and_propagates_on(graph: ValueGraph) -> None:
    graph.groups = {2: (2, 3), 3: (2, 3)}
    assert run(graph, [(1, 2), (4, 3)], {1: '[{"a"}]'}, 4) == ['[{"a"}]'] + ['[{"a", ?}]'] * 3


def test_a_group_begins_alike(graph: ValueGraph) -> None:
    graph.groups = {1: (1, 2), 2: (1, 2)}
    assert run(graph, [], {1: '[{?}], replicated={"a"}', 2: '[{"b"}]'}, 2) == ['[{"b"}]', '[{"b"}]']
    assert not disagreeing_groups(graph)


def test_a_group_that_disagrees_is_found(graph: ValueGraph) -> None:
    graph.groups = {1: (1, 2), 2: (1, 2)}
    run(graph, [], {1: '[{"a"}]', 2: '[{"b"}]'}, 2)
    assert disagreeing_groups(graph) == [((1, 2), sharding('[{"a"}]'))]


def test_a_sibling_becomes_open(graph: ValueGraph) -> None:
    graph.siblings = dict.fromkeys((2, 3), ((2, 1), (3, 2)))
    assert run(graph, [(1, 2)], {1: '[{"a"}]'}, 3) == ['[{"a"}]', '[{"a", ?}]', "[{?}, {?}]"]
