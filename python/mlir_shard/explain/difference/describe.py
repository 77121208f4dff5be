# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Describes the differences between two matched programs and between their communication, in groups."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from mlir_shard.explain.difference.changes import CollectiveChange, Cost, OperationChange, ShardingChange
from mlir_shard.explain.difference.graph import ARGUMENT, ARGUMENT_OF_CALL, Graph, Node
from mlir_shard.explain.difference.matching import Matching
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import names
from mlir_shard.transforms.communication.communication_report import (
    CommunicationReport,
    ReportedCollective,
    axes_text,
)

Graphs = tuple[Graph, Graph]
_NUMBER = re.compile(r"\d+")
_ORDER = {"argument": 0, "result": 1}


@dataclass(frozen=True, slots=True)
class _Kind:
    """The properties shared by changes of shardings that are listed as one."""

    what: str
    pattern: str
    type: str
    before: str | None
    after: str | None


def changed_shardings(graphs: Graphs, matching: Matching, *, includes_unmatched: bool) -> tuple[ShardingChange, ...]:
    """Returns the changes of the shardings of matching nodes, and if `includes_unmatched` the shardings of unmatched
    nodes; arguments come first, then results."""
    pairs: list[tuple[Node | None, Node | None]] = [*matching.pairs, *matching.by_use]
    if includes_unmatched:
        pairs += [(node, None) for node in matching.only_before]
        pairs += [(None, node) for node in matching.only_after]
    groups: dict[_Kind, list[tuple[str, tuple[Node | None, Node | None]]]] = defaultdict(list)
    seen = set[tuple[int, int, str, int]]()
    for one, other in pairs:
        shardings = one.shardings if one else (), other.shardings if other else ()
        if shardings[0] == shardings[1]:
            continue
        side, node = (1, other) if one is None else (0, one)
        assert node is not None
        for position, (before, after) in enumerate(zip_longest(*shardings)):
            # A node that is called from several places, or used several times, counts once.
            key = (one.op if one else -1, other.op if other else -1, node.what, max(position, node.position))
            if before == after or key in seen:
                continue
            seen.add(key)
            name, type_ = _name_and_type(graphs[side], node, position)
            kind = _Kind(node.what, _NUMBER.sub("*", name), type_, before, after)
            groups[kind].append((name, (one, other)))
    changes = [_sharding_change(graphs, kind, members) for kind, members in groups.items()]
    return tuple(sorted(changes, key=lambda one: _ORDER.get(one.what, 2)))


def _sharding_change(
    graphs: Graphs, kind: _Kind, members: Sequence[tuple[str, tuple[Node | None, Node | None]]]
) -> ShardingChange:
    name, pair = members[0]
    shown = name if len({name for name, _ in members}) == 1 else kind.pattern
    before, after = (_place(graph, node) if node else "" for graph, node in zip(graphs, pair, strict=True))
    return ShardingChange(kind.what, shown, kind.type, kind.before, kind.after, len(members), (before, after))


def _name_and_type(graph: Graph, node: Node, position: int) -> tuple[str, str]:
    op = graph.operation(node)
    if node.position >= 0:
        type_ = op.attributes["function_type"].value
        if node.what in (ARGUMENT, ARGUMENT_OF_CALL):
            return names.argument_names(op)[node.position], str(type_.inputs[node.position])
        return names.result_names(op)[node.position], str(type_.results[node.position])
    values = [*op.results, *(op.regions[0].blocks[0].arguments if len(op.regions) else ())]
    # A group has no result: its sharding is that of its operand.
    type_ = str((values[position] if position < len(values) else op.operands[0]).type)
    return names.location_name(op.location), type_


def _place(graph: Graph, node: Node) -> str:
    op = graph.operation(node)
    is_argument = node.what in (ARGUMENT, ARGUMENT_OF_CALL)
    location = op.regions[0].blocks[0].arguments[node.position].location if is_argument else op.location
    position = diagnostic.at("remark", "", location).position
    return f"{position.file}:{position.line}:{position.column}" if position else ""


def changed_operations(graphs: Graphs, matching: Matching) -> tuple[OperationChange, ...]:
    """Returns the operations that only one program has, and those whose types or attributes differ."""
    changed = [one for one, other in (*matching.pairs, *matching.by_use) if one.kind != other.kind]
    sides = (
        ("removed", graphs[0], matching.only_before),
        ("changed", graphs[0], changed),
        ("added", graphs[1], matching.only_after),
    )
    return tuple(one for change, graph, nodes in sides for one in _operation_changes(change, graph, nodes))


def _operation_changes(change: str, graph: Graph, nodes: Iterable[Node]) -> Iterator[OperationChange]:
    groups: dict[str, dict[tuple[int, int], Node]] = defaultdict(dict)
    for node in nodes:
        if not node.is_annotation:
            groups[node.what].setdefault((node.op, node.position), node)
    for what, members in sorted(groups.items()):
        first = next(iter(members.values()))
        yield OperationChange(change, what, len(members), _place(graph, first))


def changed_collectives(before: CommunicationReport, after: CommunicationReport) -> tuple[CollectiveChange, ...]:
    """Returns the changes of communication, those of the most bytes first.

    The operation that a collective is reported for also depends on locations, so a change of that operation alone is
    ignored.
    """
    groups: dict[tuple[str, str], dict[str, _Sides]] = defaultdict(lambda: defaultdict(_Sides))
    for side, report in enumerate((before, after)):
        for one in report.collectives:
            communication = one.communication
            members = groups[communication.kind.value, axes_text(communication.axes)][one.op]
            (members.after if side else members.before).append(one)
    changes = []
    for (kind, axes), by_op in groups.items():
        if not _differ([sides.before for sides in by_op.values()], [sides.after for sides in by_op.values()]):
            continue
        for op, sides in by_op.items():
            if _differ([sides.before], [sides.after]):
                places = _first_other(sides.before, sides.after), _first_other(sides.after, sides.before)
                costs = _cost(sides.before), _cost(sides.after)
                changes.append(CollectiveChange(kind, axes, op, *costs, places))
    return tuple(sorted(changes, key=lambda one: -abs(one.after.bytes_received - one.before.bytes_received)))


@dataclass(frozen=True, slots=True)
class _Sides:
    """Collectives of each program."""

    before: list[ReportedCollective] = field(default_factory=list)
    after: list[ReportedCollective] = field(default_factory=list)


def _contents(one: ReportedCollective) -> tuple[Any, ...]:
    communication = one.communication
    return communication.groups, communication.bytes_received, communication.total_bytes, one.loops, one.time


def _differ(before: Iterable[Sequence[ReportedCollective]], after: Iterable[Sequence[ReportedCollective]]) -> bool:
    return Counter(map(_contents, chain(*before))) != Counter(map(_contents, chain(*after)))


def _cost(collectives: Sequence[ReportedCollective]) -> Cost:
    return Cost(
        len(collectives),
        sum(one.communication.bytes_received for one in collectives),
        sum(one.communication.total_bytes for one in collectives),
        sum(one.time for one in collectives),
    )


def _first_other(collectives: Sequence[ReportedCollective], others: Sequence[ReportedCollective]) -> str:
    """Returns the place of the first collective that occurs less often among the others; empty if none exists."""
    left = Counter(map(_contents, others))
    for one in collectives:
        left[_contents(one)] -= 1
        if left[_contents(one)] < 0:
            return one.place
    return ""
