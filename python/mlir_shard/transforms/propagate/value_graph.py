# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as a graph for propagation: numbered places for shardings, nodes between them, and the fixpoint over these.

The graph contains no IR.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from mlir_shard import _native
from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.propagation import propagation_key
from mlir_shard.sharding.propagation_edges import AxisMove
from mlir_shard.sharding.tensor import EdgeFrame

if TYPE_CHECKING:
    from mlir_shard.transforms.debug_record import Record

# The state of a place without sharding.
UNKNOWN = -1
# The behaviour of nodes through which nothing propagates.
NOTHING = -1
# The type code of the array of states, which the native fixpoint uses too.
STATE_TYPE = "i"
# The place of all values to which no sharding can be attached: it never gets one.
NOWHERE = 0


class OpClass(str, Enum):
    """The class of an op that determines the order of propagation."""

    ELEMENTWISE = "elementwise"
    RESHAPING = "reshaping"
    SLICING = "slicing"
    BROADCAST = "broadcast"
    SCATTERING = "scattering"
    EDGE = "edge"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NodeKind:
    """The properties that determine the step of a node from given shardings, apart from the phase of propagation.

    `shared_operands`: an operand has other uses. `fixed_direction` overrides the direction of the phase. `frame` is
    that of the only result. `is_op` distinguishes ops from identities between places, which may always take sub-axes.
    `op_name` is set if propagation depends on it. A node that `is_deferred` waits, after an operand has changed, until
    all others are at the fixpoint. The place of an edge that `is_of_loop` is also that of arguments inside the loop.
    The place of an edge that `is_between_functions` is that of a function's argument or of the result of a call. Kinds
    compare without their rules.
    """

    rule: OpShardingRule = field(compare=False)
    op_class: OpClass = OpClass.OTHER
    shared_operands: bool = False
    fixed_direction: PropagationDirection | None = None
    frame: EdgeFrame | None = None
    is_op: bool = True
    op_name: str = ""
    is_deferred: bool = False
    is_of_loop: bool = False
    is_between_functions: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """The number of a kind, and the places of operands and results."""

    kind: int
    operands: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the operands, then of the results."""
        return self.operands + self.results


class Nodes:
    """A sequence of nodes, stored natively in `native`."""

    def __init__(self) -> None:
        self.native = _native.Nodes()

    def append(self, node: Node) -> None:
        """Adds a node after the others."""
        self.native.add(node.kind, node.operands, node.results)

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, number: int) -> Node:
        kind, operands, results = self.native[number]
        return Node(kind, tuple(operands), tuple(results))

    def __iter__(self) -> Iterator[Node]:
        return map(self.__getitem__, range(len(self.native)))


class ShardingTable:
    """Shardings by number; UNKNOWN stands for None."""

    def __init__(self) -> None:
        self._shardings: list[TensorSharding] = []
        self._numbers: dict[TensorSharding, int] = {}

    def number(self, sharding: TensorSharding | None) -> int:
        """Returns the number of a sharding; equal shardings have the same number."""
        if sharding is None:
            return UNKNOWN
        number = self._numbers.setdefault(sharding, len(self._shardings))
        if number == len(self._shardings):
            self._shardings.append(sharding)
        return number

    def __getitem__(self, number: int) -> TensorSharding | None:
        return None if number == UNKNOWN else self._shardings[number]


@dataclass(slots=True)
class ValueGraph:
    """The places of a module with their shardings, and the nodes between them.

    `returns` are not among `nodes`: they tie the values that the main function returns to the shardings of its results.
    `groups` maps each place in a group to the places of the group, which always have the same sharding. Either all
    results of an op have a sharding or none: `siblings` maps the place of each of several results to the places of all
    of them, with their ranks. If the graph does not share kinds, each kind has a number of its own.
    """

    meshes: dict[str, Mesh]
    table: ShardingTable = field(default_factory=ShardingTable)
    states: array[int] = field(default_factory=lambda: array(STATE_TYPE))
    kinds: list[NodeKind] = field(default_factory=list)
    nodes: Nodes = field(default_factory=Nodes)
    returns: Nodes = field(default_factory=Nodes)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    siblings: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    shares_kinds: bool = True
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    _rules: dict[Hashable, OpShardingRule] = field(default_factory=dict)
    # For the identity of a rule, the equal rule that kinds use, and the rule itself, which keeps its identity unique.
    _rules_by_id: dict[int, tuple[OpShardingRule, OpShardingRule]] = field(default_factory=dict)

    def kind(self, kind: NodeKind) -> int:
        """Returns the number of a kind; equal kinds share it, with one of the rules that propagate equally."""
        # Rules are large, so each rule object is compared only once.
        rule = kind.rule
        known = self._rules_by_id.get(id(rule))
        if known is None:
            alike = self._rules.setdefault(propagation_key(rule), rule) if self.shares_kinds else rule
            known = self._rules_by_id[id(rule)] = (alike, rule)
        key = (id(known[0]), kind)
        number = self._kinds.get(key)
        if number is None or not self.shares_kinds:
            number = self._kinds[key] = len(self.kinds)
            self.kinds.append(kind if rule is known[0] else replace(kind, rule=known[0]))
        return number

    def sharding(self, place: int) -> TensorSharding | None:
        """Returns the sharding of a place."""
        return self.table[self.states[place]]

    def set_sharding(self, place: int, sharding: TensorSharding | None) -> None:
        """Changes the sharding of a place, and of no other place."""
        self.states[place] = self.table.number(sharding)


States = tuple[int, ...]
# Maps the number of a behaviour and the states of a node's places to the states afterwards, or None if all stay.
Step = Callable[[int, States], "States | None"]
# Maps the same arguments to the axes that the step moves.
Moves = Callable[[int, States], Sequence[AxisMove]]


class Fixpoint:
    """The fixpoint of steps through the nodes of a graph, of which only the states change.

    A step is computed once for each distinct input, in all runs together. A record has every step: values are places,
    nodes are their numbers, and the return with number i is -1 - i.
    """

    def __init__(self, graph: ValueGraph, step: Step, record: Record[int] | None, moves: Moves) -> None:
        self._graph, self._step, self._record, self._moves = graph, step, record, moves
        self._opened: set[int] = set()
        if record is not None:
            for members in dict.fromkeys(graph.groups.values()):
                record.share(members)
        tied = {*graph.siblings, *graph.groups}
        nodes, returns = graph.nodes.native, graph.returns.native
        kinds = list(enumerate(graph.kinds))
        self._native = _native.Fixpoint(
            nodes,
            returns,
            len(graph.states),
            NOWHERE,
            sorted(tied),
            [number for number, kind in kinds if kind.is_deferred],
            [number for number, kind in kinds if kind.is_of_loop],
            [number for number, kind in kinds if kind.is_between_functions],
        )

    def run(self, behaviours: Sequence[int]) -> None:
        """Brings the shardings of the graph to the fixpoint of the step; `behaviours` has that of each kind."""

        def step(behaviour: int, before: list[int]) -> States | None:
            return self._step(behaviour, tuple(before))

        observers = () if self._record is None else (self._observe,)
        self._native.run(self._graph.states, behaviours, step, self._follow, *observers)

    def _observe(self, number: int, behaviour: int, before: Sequence[int]) -> None:
        graph, record = self._graph, self._record
        node = graph.nodes[number] if number >= 0 else graph.returns[-1 - number]
        # The value that a function returns and the result of the function have the same origins.
        results = node.results if number >= 0 else node.operands
        if record is not None:
            record.step(number, node.operands, results, self._moves(behaviour, tuple(before)))

    def _follow(self, place: int, state: int) -> list[tuple[int, int, bool, bool]]:
        """Returns the changes of the places tied to one whose state changes: siblings without a sharding become open,
        and members of its group get the same state."""
        graph = self._graph
        members = graph.groups.get(place, ())
        if self._record is not None:
            self._record.share(members)
        return self._opened_with(place, state) + [(member, state, False, True) for member in members if member != place]

    def _opened_with(self, place: int, state: int) -> list[tuple[int, int, bool, bool]]:
        """Returns the changes of the siblings of a place; none if they have followed it or another one before."""
        table, siblings = self._graph.table, self._graph.siblings.get(place, ())
        sharding = table[state]
        if not siblings or sharding is None or siblings[0][0] in self._opened:
            return []
        self._opened.add(siblings[0][0])
        mesh = sharding.mesh_or_ref
        states = {rank: table.number(TensorSharding.fully_open(rank, mesh)) for rank in {rank for _, rank in siblings}}
        return [(sibling, states[rank], True, False) for sibling, rank in siblings]
