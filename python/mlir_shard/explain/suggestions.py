# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single annotations that save bytes: candidates from lost axes and expensive collectives, each tried by running the
pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.explain.explanation import Explanation
from mlir_shard.explain.text import grouped
from mlir_shard.explain.values import Tensor
from mlir_shard.explain.what_if import Change, WhatIfError, what_if
from mlir_shard.passes.diagnostic import reported
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.tensor import DimensionSharding


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An annotation that has been tried.

    Attributes:
        tensor: the annotated tensor; change: the annotation.
        bytes_before, bytes: the bytes that a device receives without and with it; time_before, time: the seconds.
    """

    tensor: Tensor
    change: Change
    bytes_before: int
    bytes: int
    time_before: float
    time: float

    @property
    def saved(self) -> int:
        """The reduction of the bytes that a device receives."""
        return self.bytes_before - self.bytes


def suggest(
    module: Any,
    explanation: Explanation,
    *,
    collectives: str = "shard",
    sources: Mapping[str, str] | None = None,
    costs: CostModel | None = None,
    most: int = 10,
    tries: int = 40,
) -> tuple[Suggestion, ...]:
    """Returns the single annotations that save the most bytes, the best first, one for each tensor.

    Args:
        module: the global program that was explained.
        explanation: the explanation of the program, for the same `collectives`, `sources` and `costs`.
        most: the maximum number of annotations.
        tries: the maximum number of runs of the pipeline; candidates that concern more bytes are tried first.
    """
    before = explanation.report
    found = []
    for tensor, change in _first(_candidates(explanation), tries):
        try:
            # Warnings about the program with the annotation do not concern the given program.
            with reported(lambda _: None):
                tried = what_if(
                    module, [change], collectives=collectives, sources=sources, costs=costs, before=explanation
                ).after.report
        except (PassFailure, WhatIfError):
            continue
        if tried.bytes_received < before.bytes_received:
            found.append(
                Suggestion(tensor, change, before.bytes_received, tried.bytes_received, before.time, tried.time)
            )
    found.sort(key=lambda one: (-one.saved, one.time, one.change.query, one.change.sharding))
    best: dict[int, Suggestion] = {}
    for one in found:
        best.setdefault(one.tensor.number, one)
    return tuple(best.values())[:most]


def _first(candidates: Iterator[tuple[Tensor, Change]], count: int) -> Iterator[tuple[Tensor, Change]]:
    seen: set[Change] = set()
    for tensor, change in candidates:
        if change not in seen:
            if len(seen) == count:
                return
            seen.add(change)
            yield tensor, change


def _candidates(explanation: Explanation) -> Iterator[tuple[Tensor, Change]]:
    """Yields annotations of the tensors that expensive collectives move, then of arguments and results."""
    numbers = [
        cause.tensor
        for group in grouped(explanation.collectives)
        for cause in group.first.causes
        if cause.tensor is not None
    ]
    moved = list(dict.fromkeys(numbers))
    ends = [one for one in explanation.tensors if one.op in ("argument", "result") and one.shape]
    ends.sort(key=lambda one: -one.bytes)
    for number in moved:
        yield from _annotations(explanation, explanation.tensor(number))
        # The partial sums of an op follow from the shardings of its operands.
        for chain in explanation.chains(number):
            for link in chain.links[:1]:
                yield from _annotations(explanation, explanation.tensor(link.source))
    for tensor in ends:
        yield from _annotations(explanation, tensor)


def _annotations(explanation: Explanation, tensor: Tensor) -> Iterator[tuple[Tensor, Change]]:
    """Yields shardings of a tensor that add a lost or unused axis to its own sharding, or remove an axis."""
    sharding, mesh = tensor.sharding, explanation.mesh_of(tensor)
    if mesh is None or mesh.is_maximal or not tensor.shape:
        return
    closed = TensorSharding.fully_closed(len(tensor.shape), mesh) if sharding is None else sharding.close()
    for lost in explanation.lost(tensor):
        yield from _changed(tensor, _with_axis(closed, lost.dim, lost.axis), mesh, explanation)
    for dim, of in enumerate(closed.dim_shardings):
        if of.axes:
            yield from _changed(tensor, _with_dim(closed, dim, of.axes[:-1]), mesh, explanation)
    used = closed.used_axes
    for axis in (AxisRef(one.name) for one in mesh.axes if one.size > 1):
        if not any(axis.overlaps(other) for other in used):
            for dim, size in enumerate(tensor.shape):
                if size % axis.size(mesh) == 0:
                    yield from _changed(tensor, _with_axis(closed, dim, axis), mesh, explanation)


def _with_axis(sharding: TensorSharding, dim: int, axis: AxisRef) -> TensorSharding:
    """Returns a sharding with an axis at the end of a dimension, and removed from the other dimensions."""
    dims = tuple(of._replace(axes=tuple(a for a in of.axes if not a.overlaps(axis))) for of in sharding.dim_shardings)
    return _with_dim(replace(sharding, dim_shardings=dims, replicated_axes=()), dim, (*dims[dim].axes, axis))


def _with_dim(sharding: TensorSharding, dim: int, axes: tuple[AxisRef, ...]) -> TensorSharding:
    return sharding.replace_dims({dim: DimensionSharding(axes, is_closed=True)})


def _changed(
    tensor: Tensor, sharding: TensorSharding, mesh: Mesh, explanation: Explanation
) -> Iterator[tuple[Tensor, Change]]:
    query = explanation.query(tensor)
    if query is not None:
        dims = ", ".join(str(dim) for dim in sharding.dim_shardings)
        own = tensor.sharding.mesh_or_ref if tensor.sharding is not None else explanation.mesh_name(mesh)
        if isinstance(own, str):
            yield tensor, Change(query, f"@{own}, [{dims}]")
