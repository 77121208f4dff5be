# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as propagation sees it: numbered places for shardings, and the nodes between them. No IR in it.

Shardings are numbered too, equal ones alike, so that the state of a place is an integer.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection, TensorSharding
from mlir_shard.sharding.edge_frame import EdgeFrame

# The state of a place without sharding.
UNKNOWN = -1
# The place of all values that nothing can attach a sharding to: it never gets one.
NOWHERE = 0


class OpClass(Enum):
    """What the order of propagation through ops depends on."""

    ELEMENTWISE = "elementwise"
    RESHAPING = "reshaping"
    SLICING = "slicing"
    BROADCAST = "broadcast"
    EDGE = "edge"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class NodeKind:
    """All that decides what a node does with given shardings, but for the phase of propagation.

    `shared_operands` says that an operand has other uses. `fixed_direction` comes before what the phase says. `frame`
    is that of the only result. `is_op` tells ops from identities between places, which may always take sub-axes.
    """

    rule: OpShardingRule
    op_class: OpClass = OpClass.OTHER
    shared_operands: bool = False
    fixed_direction: PropagationDirection | None = None
    frame: EdgeFrame | None = None
    is_op: bool = True


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


class ShardingTable:
    """Shardings by number; UNKNOWN is None."""

    def __init__(self) -> None:
        self._shardings: list[TensorSharding] = []
        self._numbers: dict[TensorSharding, int] = {}

    def number(self, sharding: TensorSharding | None) -> int:
        """The number of a sharding, equal ones having the same."""
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

    `returns` are not among `nodes`: they tie what the main function returns to the shardings of its results.
    `groups` are places that always have the same sharding, by each place in one. Of the results of one op either all
    have a sharding or none: `siblings` are, by each of several results, the others with their ranks.
    """

    meshes: dict[str, Mesh]
    table: ShardingTable = field(default_factory=ShardingTable)
    states: list[int] = field(default_factory=list)
    kinds: list[NodeKind] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    returns: list[Node] = field(default_factory=list)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    siblings: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    _kinds: dict[Hashable, int] = field(default_factory=dict)

    def kind(
        self,
        rule: OpShardingRule,
        op_class: OpClass = OpClass.OTHER,
        *,
        shared_operands: bool = False,
        fixed_direction: PropagationDirection | None = None,
        frame: EdgeFrame | None = None,
        is_op: bool = True,
    ) -> int:
        """The number of a kind. A rule is large, so kinds are told apart by the identity of their rule objects."""
        key = (id(rule), op_class, shared_operands, fixed_direction, frame, is_op)
        number = self._kinds.get(key)
        if number is None:
            number = self._kinds[key] = len(self.kinds)
            self.kinds.append(NodeKind(rule, op_class, shared_operands, fixed_direction, frame, is_op))
        return number

    def sharding(self, place: int) -> TensorSharding | None:
        """The sharding of a place."""
        return self.table[self.states[place]]

    def set_sharding(self, place: int, sharding: TensorSharding | None) -> None:
        """Changes the sharding of a place, and of no other."""
        self.states[place] = self.table.number(sharding)
