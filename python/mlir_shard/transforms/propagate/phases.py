# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of propagation over a value graph: by user priority, then by phase of ops, then by strategy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from mlir_shard.rules.registry import Group, is_among
from mlir_shard.sharding import PropagationDirection, TensorSharding
from mlir_shard.sharding.propagation import propagate_aggressive, propagate_basic
from mlir_shard.sharding.rule import FactorType
from mlir_shard.sharding.tensor import first_stage, later_priorities, mesh_of, with_priority
from mlir_shard.transforms.debug_record import Record
from mlir_shard.transforms.propagate.step import Phase, Steps, Strategy, both_ways
from mlir_shard.transforms.propagate.value_graph import Fixpoint, NodeKind, OpClass, ValueGraph

STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "basic": (propagate_basic,),
    "aggressive": (propagate_aggressive,),
    "basic-then-aggressive": (propagate_basic, propagate_aggressive),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The strategies, applied in order in each phase; whether the user's priorities count; and whether phases depend on
    the names of ops, or place lookups and scatters by their class, see `op_class`."""

    strategies: tuple[Strategy, ...]
    phases: Sequence[Phase] = (both_ways,)
    by_user_priority: bool = False
    by_op_name: bool = False
    lookups_first: bool = False
    conservative: bool = False


def propagate(graph: ValueGraph, plan: Plan, record: Record[int] | None = None) -> None:
    """Propagates the shardings of a graph until nothing changes, and records the steps in `record` if it is given."""
    synchronize_groups(graph)
    steps = Steps(graph, conservative=plan.conservative)
    fixpoint = Fixpoint(graph, steps, record, steps.moves)

    def run() -> None:
        for phase in plan.phases:
            for strategy in plan.strategies:
                fixpoint.run(steps.behaviours(strategy, phase))

    if not plan.by_user_priority:
        run()
        return
    waiting = _hold_back(graph)
    run()
    for priority in sorted(waiting):
        for place, original in waiting[priority]:
            now = graph.sharding(place)
            if now is not None:
                graph.set_sharding(place, with_priority(now, original, priority))
        run()


def _hold_back(graph: ValueGraph) -> dict[int, list[tuple[int, TensorSharding]]]:
    """Removes all dimensions of later priorities; returns the places and full shardings with them, by priority."""
    waiting: dict[int, list[tuple[int, TensorSharding]]] = {}
    stages = {state: stage for state in set(graph.states) if (stage := _stages(graph.table[state], graph))}
    if all(state == stage.first and not stage.later for state, stage in stages.items()):
        return waiting
    for place, state in enumerate(graph.states):
        stage = stages.get(state)
        if stage is None:
            continue
        graph.states[place] = stage.first
        for priority in stage.later:
            waiting.setdefault(priority, []).append((place, stage.whole))
    return waiting


@dataclass(frozen=True, slots=True)
class _Stages:
    """A sharding, the number of its part that propagates first, and the priorities of the rest."""

    whole: TensorSharding
    first: int
    later: tuple[int, ...]


def _stages(sharding: TensorSharding | None, graph: ValueGraph) -> _Stages | None:
    mesh = None if sharding is None else mesh_of(sharding, graph.meshes)
    if sharding is None or mesh is None:
        return None
    return _Stages(sharding, graph.table.number(first_stage(sharding, mesh)), tuple(later_priorities(sharding)))


def synchronize_groups(graph: ValueGraph) -> None:
    """Gives all places of a group the only sharding among them."""
    for members in dict.fromkeys(graph.groups.values()):
        found = _shardings_of(members, graph)
        if len(found) == 1:
            for member in members:
                graph.set_sharding(member, found[0])


def disagreeing_groups(graph: ValueGraph) -> list[tuple[tuple[int, ...], TensorSharding]]:
    """Returns the groups whose places have different shardings, with the first of these."""
    groups = dict.fromkeys(graph.groups.values())
    found = ((members, _shardings_of(members, graph)) for members in groups)
    return [(members, shardings[0]) for members, shardings in found if len(shardings) > 1]


def _shardings_of(members: tuple[int, ...], graph: ValueGraph) -> list[TensorSharding]:
    """Returns the distinct shardings of places, without those that are fully open and have no axes."""
    shardings = (graph.sharding(member) for member in members)
    return list(dict.fromkeys(one for one in shardings if one is not None and not _says_nothing(one)))


def _says_nothing(sharding: TensorSharding) -> bool:
    return sharding.is_fully_open and sharding.is_fully_replicated


NONE, FORWARD, BACKWARD, BOTH = PropagationDirection


def _passing_on(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    match kind.op_class:
        case OpClass.ELEMENTWISE | OpClass.RESHAPING | OpClass.EDGE:
            return BOTH
        case OpClass.SLICING:
            return FORWARD
        case _:
            return NONE


def _passing_on_single_uses(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return NONE if kind.shared_operands else _passing_on(kind, factor_type)


def _without_communication(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    # A scatter is often the gradient of a lookup in values that a product determines, such as logits.
    if factor_type is not FactorType.PASS_THROUGH or kind.op_class is OpClass.SCATTERING:
        return NONE
    return _all_but_broadcasts(kind, factor_type)


def _all_but_broadcasts(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return BACKWARD if kind.op_class is OpClass.BROADCAST else BOTH


def _all(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return BOTH


_SCHEDULE = (_passing_on_single_uses, _passing_on, _without_communication, _all_but_broadcasts, _all)


def _through(group: Group) -> Phase:
    def phase(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
        return BOTH if is_among(kind.op_name, group) else NONE

    return phase


def _up_to(phases: tuple[Phase, ...]) -> Phase:
    def phase(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
        return reduce(PropagationDirection.union, (one(kind, factor_type) for one in phases), NONE)

    return phase


def phases(first: Iterable[Group] = ()) -> tuple[Phase, ...]:
    """Returns the phases in their order: `first` are the groups of ops, by name, that propagate before all others.

    Each phase includes the directions of all phases before it.
    """
    one_by_one = (*map(_through, first), *_SCHEDULE)
    return tuple(_up_to(one_by_one[: number + 1]) for number in range(len(one_by_one)))
