# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recorded propagation has the same result as an unrecorded one, and the record has the origins of axes."""

from __future__ import annotations

from array import array
from random import Random

import pytest
from sharding.texts import sharding

from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule
from mlir_shard.transforms.debug_record import Record
from mlir_shard.transforms.propagate.phases import STRATEGIES, Plan, phases, propagate
from mlir_shard.transforms.propagate.value_graph import NOWHERE, STATE_TYPE, UNKNOWN, Node, NodeKind, ValueGraph

RULES = [OpShardingRule.pointwise((8,), count) for count in (1, 2)]
TEXTS = ['[{"a", ?}]', '[{"b", ?}p1]', '[{"a", "b"}]', "[{}]", '[{?}], replicated={"b"}']


def random_graph(seed: int) -> ValueGraph:
    """Returns a graph over 12 places with groups, siblings, returns and priorities."""
    random = Random(seed)
    graph = ValueGraph({"mesh": Mesh({"a": 2, "b": 2}.items())})
    kinds = [graph.kind(NodeKind(rule)) for rule in RULES]
    graph.states = array(STATE_TYPE, [UNKNOWN] * 15)
    for place in random.sample(range(1, 13), 4):
        graph.set_sharding(place, sharding(random.choice(TEXTS)))
    for result in range(3, 13):
        kind = random.randrange(len(kinds))
        operands = [random.randrange(result) for _ in RULES[kind].operand_mappings]
        graph.nodes.append(Node(kinds[kind], tuple(operands), (result,)))
    for place in (13, 14):
        graph.returns.append(Node(kinds[0], (random.randrange(1, 13),), (place,)))
    first, second, third = random.sample(range(3, 13), 3)
    graph.groups = dict.fromkeys((first, second), (first, second))
    graph.siblings = {third: ((second, 1),)}
    return graph


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_shardings_are_the_same(seed: int, strategy: str) -> None:
    plan = Plan(STRATEGIES[strategy], phases(), by_user_priority=True)
    graph, recorded = random_graph(seed), random_graph(seed)
    propagate(graph, plan)
    record: Record[int] = Record()
    for place in range(NOWHERE + 1, len(recorded.states)):
        record.begin(place, recorded.sharding(place), f"place {place}")
    propagate(recorded, plan, record)
    shardings = [graph.sharding(place) for place in range(len(graph.states))]
    assert [recorded.sharding(place) for place in range(len(graph.states))] == shardings
    # A returned value and the function's result share an origin, which is stored with the returned value.
    keys = {node.results[0]: node.operands[0] for node in recorded.returns}
    for place, one in enumerate(shardings):
        assert one is None or record.knows(keys.get(place, place), one) or record.knows(place, one)


def test_steps_are_numbered_as_they_come() -> None:
    graph = ValueGraph({"mesh": Mesh({"a": 2, "b": 2}.items())})
    kind = graph.kind(NodeKind(RULES[0]))
    for source, target in ((1, 2), (2, 3), (3, 4)):
        graph.nodes.append(Node(kind, (source,), (target,)))
    graph.states = array(STATE_TYPE, [UNKNOWN] * 5)
    graph.set_sharding(3, sharding('[{"a", ?}]'))
    record: Record[int] = Record(next_step=5)
    record.begin(3, graph.sharding(3), "here")
    propagate(graph, Plan(STRATEGIES["basic"]), record)
    # The second node is the first to change a sharding, followed by the node that its change reaches, then the last.
    assert {node: [step for step, _ in moves] for node, moves in record.moves.items()} == {1: [5], 0: [6], 2: [7]}
    assert record.next_step == 8
    assert record.origins == {place: {AxisRef("a"): "here"} for place in (1, 2, 3, 4)}
