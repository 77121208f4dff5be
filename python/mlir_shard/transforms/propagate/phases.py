# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of propagation over a value graph: user priorities, in each the phases of ops, in each the strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.propagation import propagate_aggressive, propagate_basic
from mlir_shard.sharding.tensor import first_stage, later_priorities, with_priority
from mlir_shard.transforms.propagate.debug_fixpoint import RecordingFixpoint
from mlir_shard.transforms.propagate.debug_record import Record
from mlir_shard.transforms.propagate.fixpoint import Fixpoint
from mlir_shard.transforms.propagate.step import Phase, Steps, Strategy, both_ways
from mlir_shard.transforms.propagate.value_graph import ValueGraph

STRATEGIES: dict[str, tuple[Strategy, ...]] = {
    "basic": (propagate_basic,),
    "aggressive": (propagate_aggressive,),
    "basic-then-aggressive": (propagate_basic, propagate_aggressive),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The strategies, one after the other in each phase; whether the user's priorities count; and whether the phases go
    by names of ops."""

    strategies: tuple[Strategy, ...]
    phases: Sequence[Phase] = (both_ways,)
    by_user_priority: bool = False
    by_op_name: bool = False
    conservative: bool = False


def propagate(graph: ValueGraph, plan: Plan, record: Record[int] | None = None) -> None:
    """Brings the shardings of a graph to where nothing propagates any more, with a record of how where one is given."""
    synchronize_groups(graph)
    steps = Steps(graph, conservative=plan.conservative)
    to_fixpoint = _native(graph, steps) if record is None else _recording(graph, steps, record)

    def run() -> None:
        for phase in plan.phases:
            for strategy in plan.strategies:
                to_fixpoint(strategy, phase)

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


def _native(graph: ValueGraph, steps: Steps) -> Callable[[Strategy, Phase], None]:
    fixpoint = Fixpoint(graph)
    return lambda strategy, phase: fixpoint.run(steps.behaviours(strategy, phase), steps)


def _recording(graph: ValueGraph, steps: Steps, record: Record[int]) -> Callable[[Strategy, Phase], None]:
    for members in dict.fromkeys(graph.groups.values()):
        record.share(members)
    fixpoint = RecordingFixpoint(graph, record)
    return lambda strategy, phase: fixpoint.run(steps.behaviours(strategy, phase), steps, steps.moves)


def _hold_back(graph: ValueGraph) -> dict[int, list[tuple[int, TensorSharding]]]:
    """Leaves all dimensions of later priorities out; the places and shardings they belong to, by priority."""
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
    mesh = None if sharding is None else _mesh_of(sharding, graph)
    if sharding is None or mesh is None:
        return None
    return _Stages(sharding, graph.table.number(first_stage(sharding, mesh)), tuple(later_priorities(sharding)))


def _mesh_of(sharding: TensorSharding, graph: ValueGraph) -> Mesh | None:
    ref = sharding.mesh_or_ref
    return ref if isinstance(ref, Mesh) else graph.meshes.get(ref)


def synchronize_groups(graph: ValueGraph) -> None:
    """Gives all places of a group the sharding that one of them has."""
    for members in dict.fromkeys(graph.groups.values()):
        found = _shardings_of(members, graph)
        if len(found) == 1:
            for member in members:
                graph.set_sharding(member, found[0])


def disagreeing_groups(graph: ValueGraph) -> list[tuple[tuple[int, ...], TensorSharding]]:
    """The groups whose places have different shardings, with the first of these."""
    groups = dict.fromkeys(graph.groups.values())
    found = ((members, _shardings_of(members, graph)) for members in groups)
    return [(members, shardings[0]) for members, shardings in found if len(shardings) > 1]


def _shardings_of(members: tuple[int, ...], graph: ValueGraph) -> list[TensorSharding]:
    """The different shardings of places, but for those that say nothing."""
    shardings = (graph.sharding(member) for member in members)
    return list(dict.fromkeys(one for one in shardings if one is not None and not _says_nothing(one)))


def _says_nothing(sharding: TensorSharding) -> bool:
    return sharding.is_fully_open and sharding.is_fully_replicated
