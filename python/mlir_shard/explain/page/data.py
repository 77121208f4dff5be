# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The data that the scripts of the page read: an explanation as tables whose size is proportional to the program.

Chains are stored as steps that refer to the step before them, because tensors share most of their steps. Rows of tables
refer to each other by number; `assets/model.js` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard.explain.memory import memory_over_program
from mlir_shard.explain.page.outline import Outline
from mlir_shard.explain.page.tables import Places, Table
from mlir_shard.explain.places import Place
from mlir_shard.explain.quantities import entries_of
from mlir_shard.explain.suggestions import Suggestion
from mlir_shard.explain.values import Annotation, Cause, ExplainedCollective, Lost, Step, Tensor
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms.communication.communication_report import axes_text

if TYPE_CHECKING:
    from mlir_shard.explain.explanation import Explanation


def page_data(
    explanation: Explanation, suggested: Sequence[Suggestion] = (), selected: Tensor | None = None
) -> dict[str, Any]:
    """Returns an explanation as tables of numbers and texts, see `document.page_html`."""
    return _Page(explanation).data(suggested, selected)


class _Page:
    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        known = Places()
        self._texts, self._places = known.texts, known.places
        self._meshes: Table[tuple[str, Mesh]] = Table(self._mesh)
        self._types: Table[tuple[tuple[int, ...], str, int]] = Table(list)
        self._shardings: Table[TensorSharding] = Table(self._sharding)
        self._links: Table[tuple[str, str, str, str, int]] = Table(
            lambda link: [*map(self._texts.row, link[:4]), link[4]]
        )
        self._annotations: Table[Annotation] = Table(self._annotation)
        self._causes: Table[Cause] = Table(self._cause)
        self._outline = Outline()
        self._rows = {tensor.number: row for row, tensor in enumerate(explanation.tensors)}
        self._steps: list[list[int]] = []
        self._step_of: dict[Step, int] = {}

    def data(self, suggested: Sequence[Suggestion], selected: Tensor | None) -> dict[str, Any]:
        """Returns all tables of the page, by name."""
        explanation = self._explanation
        for symbol, mesh in explanation.meshes.items():
            self._meshes.row((symbol, mesh))
        tensors = [self._tensor(one) for one in explanation.tensors]
        # An origin is a dimension, an axis, and a step or, if negative, an annotation.
        origins = [self._origins(one) for one in explanation.tensors]
        lost = {row: found for row, one in enumerate(explanation.tensors) if (found := self._lost_by(one))}
        collectives = [self._collective(one) for one in explanation.collectives]
        memory = self._memory()
        return {
            "selected": -1 if selected is None else self._rows[selected.number],
            "suggestions": [self._suggestion(one) for one in suggested],
            **({} if memory is None else {"memory": memory}),
            "tensors": _columns(tensors, "name op index place type sharding group"),
            "origins": origins,
            "lost": lost,
            "collectives": collectives,
            "causes": self._causes.rows,
            "steps": _columns(self._steps, "link place source before"),
            "links": self._links.rows,
            "annotations": self._annotations.rows,
            "groups": {"parent": self._outline.parents, "label": self._outline.labels},
            "types": self._types.rows,
            "shardings": self._shardings.rows,
            "meshes": self._meshes.rows,
            "places": _columns(self._places.rows, "file line column name around"),
            "texts": self._texts.rows,
            "totals": explanation.report.as_data()["totals"],
        }

    def _tensor(self, tensor: Tensor) -> list[int]:
        text = self._texts.row
        return [
            text(tensor.name),
            text(tensor.op),
            tensor.index,
            self._places.row(tensor.place),
            self._types.row((tensor.shape, tensor.element, tensor.bytes)),
            -1 if tensor.sharding is None else self._shardings.row(tensor.sharding),
            self._outline.group(tensor, self._explanation.regions(tensor)),
        ]

    def _mesh(self, named: tuple[str, Mesh]) -> dict[str, Any]:
        symbol, mesh = named
        return {
            "name": symbol,
            "axes": [[axis.name, axis.size] for axis in mesh.axes],
            "devices": list(mesh.device_ids),
        }

    def _sharding(self, sharding: TensorSharding) -> list[Any]:
        mesh = mesh_of(sharding, self._explanation.meshes)
        of = sharding.mesh_or_ref
        row = -1 if mesh is None else self._meshes.row(("" if isinstance(of, Mesh) else of, mesh))
        dims = [_axes(dim.axes, mesh) for dim in sharding.dim_shardings]
        return [row, dims, _axes(sharding.unreduced_axes, mesh), self._texts.row(str(sharding))]

    def _suggestion(self, one: Suggestion) -> list[Any]:
        row = self._rows.get(one.tensor.number, -1)
        return [row, self._texts.row(one.change.sharding), one.saved, one.bytes_before, one.time_before - one.time]

    def _memory(self) -> dict[str, Any] | None:
        """Returns the memory of the function that needs the most; None if it is unknown, as for dynamic shapes."""
        module = self._explanation.module
        try:
            every = [memory_over_program(module, name) for name in entries_of(module)]
        except PassFailure:
            return None
        if not every:
            return None
        peak, points = max(every, key=lambda one: one[0].peak)
        rows: dict[Place, int] = {}
        for row, tensor in enumerate(self._explanation.tensors):
            rows.setdefault(tensor.place, row)
        text, place = self._texts.row, self._places.row
        lines = [
            [one.values, one.collectives, text(one.op), place(one.place), rows.get(one.place, -1)] for one in points
        ]
        return {
            "peak": peak.peak,
            "arguments": peak.arguments,
            "constants": peak.constants,
            "at": text(peak.at),
            "live": [[one.bytes, text(one.kind), text(one.name), text(one.place)] for one in peak.live],
            "points": _columns(lines, "values collectives op place tensor"),
        }

    # Chains.

    def _origins(self, tensor: Tensor) -> list[int]:
        found: list[int] = []
        for dim, axis, origin in self._explanation.origins(tensor):
            found += (dim, self._texts.row(str(axis)), self._origin(origin))
        return found

    def _origin(self, origin: Annotation | Step) -> int:
        """Returns the row of a step, or -1 minus the row of an annotation."""
        fresh: list[Step] = []
        while isinstance(origin, Step) and origin not in self._step_of:
            fresh.append(origin)
            origin = origin.before
        row = self._step_of[origin] if isinstance(origin, Step) else -1 - self._annotations.row(origin)
        for step in reversed(fresh):
            link = step.link
            kind = self._links.row((link.op, link.factor, link.source_role, link.target_role, link.dim))
            source = self._rows.get(link.source, -1)
            self._steps.append([kind, self._places.row(link.place), source, row])
            row = self._step_of[step] = len(self._steps) - 1
        return row

    def _annotation(self, one: Annotation) -> list[Any]:
        sharding = "" if one.sharding is None else str(one.sharding)
        text = self._texts.row
        return [text(one.kind.value), text(one.text), self._places.row(one.place), text(sharding), one.priority]

    def _lost_by(self, tensor: Tensor) -> list[list[int]]:
        return [self._lost(one) for one in self._explanation.lost(tensor)]

    def _lost(self, one: Lost) -> list[int]:
        texts = (str(one.axis), one.reason.value, one.why, one.remedy, one.op, one.factor)
        return [one.dim, *map(self._texts.row, texts), self._places.row(one.place), self._rows.get(one.source, -1)]

    # Collectives.

    def _collective(self, one: ExplainedCollective) -> list[Any]:
        found, communication = one.collective, one.collective.communication
        return [
            self._texts.row(communication.kind.value),
            [self._texts.row(axes_text([axis])) for axis in communication.axes],
            communication.groups,
            communication.bytes_received,
            communication.total_bytes,
            found.time,
            self._texts.row(found.op),
            self._texts.row(found.place),
            found.loops,
            self._outline.function(found.function),
            [self._causes.row(cause) for cause in one.causes],
        ]

    def _cause(self, one: Cause) -> list[Any]:
        text = self._texts.row
        tensor = -1 if one.tensor is None else self._rows.get(one.tensor, -1)
        axes = ", ".join(map(str, one.axes))
        texts = (one.kind.value, one.text, one.op, axes, one.alternative)
        return [*map(text, texts), self._places.row(one.place), tensor]


def _axes(axes: Iterable[AxisRef], mesh: Mesh | None) -> list[list[Any]]:
    """Returns name, product of the sizes to the left, and size of each axis; empty if the mesh is unknown."""
    return [] if mesh is None else [[axis.name, axis.pre_size, axis.size(mesh)] for axis in axes]


def _columns(rows: Iterable[list[Any]], names: str) -> dict[str, list[Any]]:
    """Returns rows as named columns, which are shorter in JSON."""
    listed = list(rows)
    columns = zip(*listed, strict=True) if listed else ((),) * len(names.split())
    return dict(zip(names.split(), map(list, columns), strict=True))
