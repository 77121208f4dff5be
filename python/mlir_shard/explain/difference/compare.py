# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares two programs: as they are given, after propagation, and after partitioning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir_shard.asm.module import bytecode_of
from mlir_shard.dialects import sdy
from mlir_shard.dialects.parsing import parse
from mlir_shard.explain.difference.changes import Difference, OperationChange, ShardingChange
from mlir_shard.explain.difference.describe import changed_collectives, changed_operations, changed_shardings
from mlir_shard.explain.difference.graph import Graph, Numbers
from mlir_shard.explain.difference.matching import Matching, match
from mlir_shard.explain.difference.order import reorder
from mlir_shard.explain.difference.reading import Show, read
from mlir_shard.explain.memory import Engine, PeakMemory
from mlir_shard.explain.quantities import amounts_of, memory_of
from mlir_shard.ir import shard
from mlir_shard.ir.editing import contents
from mlir_shard.passes import registry, runner
from mlir_shard.passes.registry import PassFailure
from mlir_shard.passes.runner import Report
from mlir_shard.runtime.backends import SHARD
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report
from mlir_shard.transforms.shardings import shardings_in


def compare(
    before: Any, after: Any, *, collectives: str = SHARD, keeps_order: bool = False, report: Report | None = None
) -> Difference:
    """Returns the differences between two programs.

    Names of values and functions are ignored, and so is the order of functions and of independent operations: the
    second program is put in the order of the first where they have operations in common.

    Args:
        before, after: modules with global types and annotations, or local ones; if either is local, only the local
            programs are compared. They are not modified.
        collectives: the dialect of the collectives of local programs, `shard` or `stablehlo`.
        keeps_order: whether the second program keeps its own order.
        report: receives the reports of the pipelines; see `mlir_shard.run`.

    Raises:
        PassFailure: a program cannot be partitioned.
    """
    registry.search("mlir_shard.transforms")
    if after.operation.context != before.operation.context:
        after = parse(bytecode_of(after), before.operation.context)
    modules = before.operation.clone(), after.operation.clone()
    annotations: tuple[ShardingChange, ...] = ()
    shardings: tuple[ShardingChange, ...] = ()
    operations: tuple[OperationChange, ...] = ()
    local = tuple(map(_is_local, modules))
    meshes: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    if local[0] == local[1] and _meshes(modules[0]) != _meshes(modules[1]):
        meshes = _meshes(modules[0]), _meshes(modules[1])
    if not any(local):
        graphs, matching = _matched(modules, is_annotated=True)
        annotations = changed_shardings(graphs, matching, includes_unmatched=True)
        operations = changed_operations(graphs, matching)
        if not keeps_order and reorder(graphs[1], matching):
            # A copy lists the uses of values in the order of the text, as the first program does.
            modules = modules[0], modules[1].operation.clone()
        for module in modules:
            runner.run(module, "builtin.module(shard-propagate)", report=report)
        graphs, matching = _matched(modules, is_annotated=False)
        shardings = changed_shardings(graphs, matching, includes_unmatched=False)
    pipeline = "spmd-pipeline" if any(local) else "shard-spmdize"
    options = f"collectives={collectives} remarks-above=none"
    for module, is_local in zip(modules, local, strict=True):
        if not is_local:
            runner.run(module, f"builtin.module({pipeline}{{{options}}})", report=report)
    reports = communication_report(modules[0]), communication_report(modules[1])
    return Difference(
        meshes,
        annotations,
        shardings,
        operations,
        changed_collectives(*reports),
        *_amounts(modules, reports),
    )


def _amounts(
    modules: tuple[Any, Any], reports: tuple[CommunicationReport, CommunicationReport]
) -> tuple[dict[str, float], dict[str, float]]:
    """Returns the quantities of two local programs, with the memory of both, for one engine, or of neither."""
    held = set().union(*(contents(module).operations for module in modules))
    engine: Engine = "pjrt" if any(name in COLLECTIVES and name.startswith("stablehlo.") for name in held) else "mpi"
    memories: list[PeakMemory | None]
    try:
        memories = [memory_of(module, engine) for module in modules]
    except PassFailure:
        memories = [None, None]
    before, after = map(amounts_of, reports, memories)
    return before, after


def _matched(modules: tuple[Any, Any], *, is_annotated: bool) -> tuple[tuple[Graph, Graph], Matching]:
    kinds = Numbers()
    has_same_meshes = len(set(map(_meshes, modules))) == 1
    before, after = (
        read(module, kinds, _show(sdy.meshes(module), is_annotated, has_same_meshes)) for module in modules
    )
    return (before, after), match(before, after)


def _show(meshes: Mapping[str, Mesh], is_annotated: bool, has_same_meshes: bool) -> Show:
    """Returns a function from a sharding to its text, with its mesh if both programs have the same several meshes.

    It returns None for a sharding without axes, unless the program is shown as annotated.
    """
    shows_mesh = has_same_meshes and len(set(meshes.values())) > 1

    def show(sharding: TensorSharding) -> str | None:
        if not is_annotated and not sharding.sharding_axes and not sharding.unreduced_axes:
            return None
        text = str(sharding).removeprefix(f"<{sharding.mesh_text}, ").removesuffix(">")
        mesh = sharding.mesh_or_ref
        known = meshes.get(mesh) if isinstance(mesh, str) else mesh
        return f"{text} on {known}" if shows_mesh else text

    return show


def _meshes(module: Any) -> tuple[str, ...]:
    """Returns the texts of the distinct meshes and grids of a module, sorted."""
    inlined = (one.mesh_or_ref for one in shardings_in(module))
    found = {*sdy.meshes(module).values(), *(one for one in inlined if isinstance(one, Mesh))}
    grids = (f"grid {'x'.join(map(str, shape))}" for shape in shard.grids(module).values())
    return tuple(sorted({*(str(one) for one in found if not one.is_empty), *grids}))


def _is_local(module: Any) -> bool:
    """Returns whether a module is a local program; one without collectives and process indices counts as global."""
    held = contents(module)
    if "sdy.sharding" in held.attributes or "shard.shard" in held.operations:
        return False
    if any(name.startswith("sdy.") and name != "sdy.mesh" for name in held.operations):
        return False
    return any(name in COLLECTIVES or name.startswith("shard.process_") for name in held.operations)
