# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions: values captured and forwarded along data-flow edges, and placements inside and outside of computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mlir_shard.dialects.data_flow_edges import DataFlowEdge, edge_holders, source_operands
from mlir_shard.ir.editing import ops_below, terminator
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.steps import Placement
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.repeated_ops import NumberedValues


@dataclass(frozen=True, slots=True)
class Side:
    """The placements of operands and arguments, or of results and returned values."""

    outside: tuple[Placement, ...]
    inside: tuple[Placement, ...]


class ComputationSides:
    """The placements of the operands and results of computations, found once for equal types and shardings.

    Args:
        grid: the grid that the module is partitioned on.
    """

    def __init__(self, grid: DeviceGrid) -> None:
        self._grid = grid
        self._known = cache(self._placements)

    def of(self, op: Any) -> tuple[Side, Side]:
        """Returns the placements of the operands of a computation, and of its results.

        Raises:
            PassFailure: a type in the body is not the local type along the manual axes.
        """
        manual = op.attributes["manual_axes"].value.value if "manual_axes" in op.attributes else ()
        arguments, returned = op.regions[0].blocks[0].arguments, terminator(op).operands
        return (
            self._side(op, "in_shardings", (op.operands, arguments), manual),
            self._side(op, "out_shardings", (op.results, returned), manual),
        )

    def _side(self, op: Any, name: str, values: tuple[Sequence[Any], Sequence[Any]], manual: tuple[str, ...]) -> Side:
        outer, inner = values
        given = op.attributes[name].value.shardings if name in op.attributes else (None,) * len(outer)
        found = []
        for value, local, sharding in zip(outer, inner, given, strict=True):
            placements = self._known(value.type, local.type, sharding, manual)
            if placements is None:
                raise PassFailure(
                    f"'{op.name}' cannot be partitioned: the local type of {value.type} along the manual axes does "
                    f"not match the type {local.type} in its body",
                    op,
                )
            found.append(placements)
        return Side(tuple([outside for outside, _ in found]), tuple([inside for _, inside in found]))

    def _placements(
        self, type_: Any, local: Any, sharding: TensorSharding | None, manual: tuple[str, ...]
    ) -> tuple[Placement, Placement] | None:
        """Returns the placements outside and inside; None if `local` is not the local type along the manual axes."""
        rank = rank_of(type_)
        placement = Placement(((),) * rank) if sharding is None else self._even_along_manual(type_, sharding, manual)
        used = frozenset() if sharding is None else self._manual_axes(sharding, manual)
        inside = Placement(tuple(tuple(axis for axis in axes if axis not in used) for axes in placement.dims))
        along_manual = Placement(tuple(tuple(axis for axis in axes if axis in used) for axes in placement.dims))
        if rank and self._grid.local_shape(shape_of(type_), along_manual) != shape_of(local):
            return None
        return placement, inside

    def _even_along_manual(self, type_: Any, sharding: TensorSharding, manual: tuple[str, ...]) -> Placement:
        """Returns the placement; a dimension that all its axes do not divide keeps its manual axes alone, if any."""
        placement = self._grid.placement(sharding, rank_of(type_))
        used = self._manual_axes(sharding, manual)
        dims = []
        for size, axes in zip(shape_of(type_), placement.dims, strict=True):
            own = tuple(axis for axis in axes if axis in used)
            dims.append(own if own and not self._grid.is_even(size, axes) else axes)
        return Placement(tuple(dims))

    def _manual_axes(self, sharding: TensorSharding, manual: tuple[str, ...]) -> frozenset[int]:
        """Returns the grid axes of the manual axes that a sharding uses; a sharding on an empty mesh uses none."""
        names = {axis.name for axis in sharding.used_axes}
        used = tuple(AxisRef(name) for name in manual if name in names)
        return frozenset(self._grid.axes_of(sharding.mesh_or_ref, used))


def has_single_blocks(op: Any) -> bool:
    """Returns whether no region of an op has several blocks."""
    return all(len(region.blocks) <= 1 for region in op.regions)


def captured_uses(op: Any, placements: NumberedValues[Placement]) -> list[tuple[Any, tuple[tuple[Any, int], ...]]]:
    """Returns the sharded values that ops in the regions of `op` use, with (op, operand number) of each use."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    for inner in ops_below(op) if len(op.regions) else ():
        for number, value in enumerate(inner.operands):
            if value in placements and placements[value].used:
                found.setdefault(value, []).append((inner, number))
    return [(value, tuple(uses)) for value, uses in found.items()]


def passed_on(
    op: Any, edges: Sequence[DataFlowEdge], placements: Sequence[Placement], other: Callable[[Any], Placement]
) -> list[list[Placement]]:
    """Returns the placements of the operands of an op, then of those of the terminator of each region.

    Args:
        op: an op whose regions have one block each, or none.
        edges, placements: its data-flow edges, and the placement of each.
        other: returns the placement of a value that is on no edge.

    Raises PassFailure if edges with different placements have the same operand as a source.
    """
    holders = edge_holders(op)
    result = [[other(value) for value in one.operands] for one in holders]
    of_edges: dict[tuple[int, int], Placement] = {}
    for placement, operands in zip(placements, source_operands(holders, edges), strict=True):
        for number, index in operands:
            if of_edges.setdefault((number, index), placement) != placement:
                raise PassFailure(
                    f"'{op.name}' cannot be partitioned: two of its data-flow edges with different shardings share "
                    f"operand {index} of '{holders[number].name}' as a source",
                    op,
                )
            result[number][index] = placement
    return result
