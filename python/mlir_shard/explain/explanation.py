# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explains a program: runs its pipeline on a copy, observes the passes that decide, and reads the local program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import mlir_shard
from mlir_shard.explain import text
from mlir_shard.explain.causes import Causes
from mlir_shard.explain.chains import Chains
from mlir_shard.explain.losses import Losses
from mlir_shard.explain.places import Place, SourceTexts, place_of
from mlir_shard.explain.propagation_trace import PropagationTrace
from mlir_shard.explain.recorded_moves import PlannedOp, RecordedReshard, op_tag, planned_op, read_reshards
from mlir_shard.explain.selection import select
from mlir_shard.explain.values import Annotation, Chain, ExplainedCollective, Lost, Operation, Step, Tensor
from mlir_shard.ir.editing import functions, operations_named
from mlir_shard.passes import resolution
from mlir_shard.passes.instrumentation import Instrumentation
from mlir_shard.passes.resolution import Nest
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.sharding import Mesh
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.communication_report import CommunicationReport
from mlir_shard.transforms.communication.shard_communication_report import communication_report
from mlir_shard.transforms.shardings import Side, shardings_of

if TYPE_CHECKING:
    from mlir_shard.explain.suggestions import Suggestion
    from mlir_shard.sharding import Mesh
    from mlir_shard.sharding.axes import AxisRef
    from mlir_shard.transforms.debug_record import Record
    from mlir_shard.transforms.device_grid import DeviceGrid
    from mlir_shard.transforms.partition.op_decisions import OpPlan
    from mlir_shard.transforms.propagate.read_module import ModuleReader

_RESHARDS = "sdy-insert-explicit-reshards"


@dataclass(frozen=True, repr=False)
class Explanation:
    """The reasons for the shardings and the partitioning of a program.

    Attributes:
        module: the operation of the local module.
        report: its collectives with bytes and times.
    """

    module: Any
    report: CommunicationReport
    _trace: PropagationTrace
    _causes: Causes
    _chains: Chains
    _losses: Losses

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the propagated program, in program order."""
        return tuple(self._trace.tensors())

    @cached_property
    def collectives(self) -> tuple[ExplainedCollective, ...]:
        """The collectives of the local program with their causes, in program order."""
        ops = operations_named(self.module, *sorted(COLLECTIVES))
        return tuple(
            ExplainedCollective(one, self._causes.of(op)) for one, op in zip(self.report.collectives, ops, strict=True)
        )

    def select(self, query: str) -> tuple[Tensor, ...]:
        """Returns the tensors that a query selects, see `selection.select`. Raises NothingSelected if none is."""
        return select(self.tensors, query)

    def value(self, query: str) -> str:
        """Returns the reasons for the shardings of the tensors that a query selects. Raises NothingSelected."""
        return "\n\n".join(text.tensor_text(self, tensor) for tensor in self.select(query))

    def html(self, title: str = "program", suggested: Sequence[Suggestion] = ()) -> str:
        """Returns one HTML page that shows the explanation, and loads nothing.

        Args:
            title: the title of the page.
            suggested: annotations that save bytes, see `suggestions.suggest`.
        """
        from mlir_shard.explain.page.document import page_html

        return page_html(self, title, suggested)

    def __str__(self) -> str:
        return text.program_text(self)

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.tensors)} tensors and {len(self.collectives)} collectives>"

    def _repr_html_(self) -> str:
        """Returns the page in a frame, for notebooks."""
        page = escape(self.html("program"))
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 40em; border: 0"></iframe>'

    def query(self, tensor: Tensor) -> str | None:
        """Returns a query that selects a tensor and no other one; None if no such query exists."""
        numbered = tensor.op in ("argument", "result")
        asked = [f"{tensor.op} {tensor.index}"] if numbered else [tensor.name]
        place = tensor.place
        if not numbered and place.file and place.line:
            asked.append(f"{place.file}:{place.line}:{place.column}")
        for query in asked:
            try:
                found = select(self.tensors, f"@{tensor.function}:{query}")
            except ValueError:
                continue
            if len(found) == 1:
                return f"@{tensor.function}:{query}"
        return None

    def mesh_of(self, tensor: Tensor) -> Mesh | None:
        """Returns the mesh of a tensor; without a sharding the only mesh of the program, None if there are several."""
        meshes = self._trace.meshes
        if tensor.sharding is not None:
            return mesh_of(tensor.sharding, meshes)
        return next(iter(meshes.values())) if len(meshes) == 1 else None

    def mesh_name(self, mesh: Mesh) -> str | None:
        """Returns the name of a mesh of the program; None for a mesh without a name."""
        return next((name for name, other in self._trace.meshes.items() if other == mesh), None)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The ops of the functions of the propagated program, in program order, each before the ops in its regions."""
        return tuple(self._trace.operations())

    def tensor_of(self, value: int) -> Tensor | None:
        """Returns the tensor of a value of an operation; None for a value that cannot be sharded."""
        number = self._trace.tensor_of_value(value)
        return None if number is None else self._trace.tensor(number)

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes of the program by name."""
        return self._trace.meshes

    def regions(self, tensor: Tensor) -> tuple[tuple[str, Place], ...]:
        """Returns the ops whose regions contain a tensor, with their places, from the outermost below the function."""
        return self._trace.regions(tensor.number)

    def tensor(self, number: int) -> Tensor:
        """Returns a tensor by its number."""
        return self._trace.tensor(number)

    def chains(self, tensor: Tensor | int) -> tuple[Chain, ...]:
        """Returns for each axis of a tensor the annotation that it comes from and the propagation steps in between."""
        return tuple(self._chains.chains(tensor if isinstance(tensor, int) else tensor.number))

    def origins(self, tensor: Tensor | int) -> tuple[tuple[int, AxisRef, Annotation | Step], ...]:
        """Returns the dimension, the axis and the end of the chain for each axis of a tensor.

        Tensors share the steps of their chains, so all chains take memory in proportion to the size of the program.
        """
        number = tensor if isinstance(tensor, int) else tensor.number
        return tuple((dim, axis, self._chains.origin(number, axis, dim)) for dim, axis in self._chains.axes(number))

    def lost(self, tensor: Tensor | int) -> tuple[Lost, ...]:
        """Returns the axes of neighbours that a tensor could have had but lacks, with the reasons."""
        return self._losses.of(tensor if isinstance(tensor, int) else tensor.number)


def explain(
    module: Any,
    *,
    collectives: str = "shard",
    sources: Mapping[str, str] | None = None,
    costs: CostModel | None = None,
) -> Explanation:
    """Explains a global program; the module is not modified.

    Args:
        module: an `ir.Module` or its operation.
        collectives: the dialect of the collectives of the local program, `shard` or `stablehlo`.
        sources: texts of files by name, for the names of values in them.
        costs: predicts times.

    Raises:
        PassFailure: the program cannot be partitioned.
    """
    clone = module.operation.clone()
    recorder = _Recorder(SourceTexts(sources or {}), frozenset(_annotated_arguments(clone)))
    run = mlir_shard.run  # Makes the passes known.
    options = f"collectives={collectives} remarks-above=none"
    tree = resolution.from_text(f"builtin.module(spmd-pipeline{{{options}}})")
    for step in _passes(tree):
        if step.name == "sdy-user-priority-propagate":
            step.observers = (recorder.propagated,)
        elif step.name == "spmdize":
            step.observers = (recorder.planned,)
    run(clone, tree, instrumentations=[recorder])
    trace = recorder.trace
    assert trace is not None
    chains = Chains(trace)
    losses = Losses(trace, chains)
    causes = Causes(trace, losses, recorder.reshards, recorder.plans)
    return Explanation(clone, communication_report(clone, costs), trace, causes, chains, losses)


class _Recorder(Instrumentation):
    """The recorder of the decisions of the passes of one run."""

    def __init__(self, sources: SourceTexts, annotated: frozenset[Place]) -> None:
        self._sources, self._annotated = sources, annotated
        self.trace: PropagationTrace | None = None
        self.reshards: list[RecordedReshard] = []
        self.plans: dict[int, PlannedOp] = {}

    def propagated(self, reader: ModuleReader, original: Sequence[int], record: Record[int]) -> None:
        self.trace = PropagationTrace(reader, original, record, self._sources, self._annotated)

    def planned(self, planned: OpPlan, op: Any, grid: DeviceGrid) -> None:
        number = op_tag(op.location)
        if number >= 0:
            self.plans.setdefault(number, planned_op(planned, op, grid))

    def after_pass(self, title: str, name: str, op: Any, failed: bool) -> None:
        if name == _RESHARDS and not failed:
            read_reshards(op, self.reshards)


def _passes(nest: Nest) -> Iterator[Any]:
    for step in nest.steps:
        if isinstance(step, Nest):
            yield from _passes(step)
        else:
            yield step


def _annotated_arguments(module: Any) -> Iterator[Place]:
    """Yields the places of the arguments of functions that have shardings."""
    for function in functions(module).values():
        given = shardings_of(function, Side.ARGUMENTS)
        if any(given) and len(function.regions[0].blocks):
            for argument, sharding in zip(function.regions[0].blocks[0].arguments, given, strict=True):
                if sharding is not None:
                    yield place_of(argument.location)
