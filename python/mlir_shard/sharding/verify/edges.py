# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Invariants of propagation edges, alone and against the op they are on."""

from __future__ import annotations

from mlir_shard.sharding.edges import AxisToPropagationDetails, EdgeNodeType, EdgeValueRef, PropagationEdges
from mlir_shard.sharding.mesh import Mesh


def check_propagation_edges(edges: PropagationEdges) -> str | None:
    """Steps have different indices from 0 on, and an axis goes from one value to others, to each once."""
    seen: set[int] = set()
    for step in edges.value:
        if step.step_index < 0:
            return f"propagation step {step.step_index} is negative"
        if step.step_index in seen:
            return f"propagation step {step.step_index} is given twice"
        seen.add(step.step_index)
        for entry in step.axis_entries:
            if violation := _check_entry(entry):
                return f"propagation step {step.step_index}: {violation}"
    return None


def check_edges_on_op(
    edges: PropagationEdges, mesh: Mesh | None, operands: int | None, results: int | None
) -> str | None:
    """The axes are in the mesh and the values are among the op's operands and results.

    `mesh` is the one mesh of all shardings the edges refer to, None where there is no such one. A count of None is not
    checked: the edges of an op that stands for a function's values may name any of those.
    """
    if mesh is None:
        return "propagation edges have to be between values whose shardings have one mesh"
    for step in edges.value:
        for entry in step.axis_entries:
            violation = _check_entry_on_op(entry, mesh, operands, results)
            if violation:
                return f"propagation step {step.step_index}: {violation}"
    return None


def _check_entry(entry: AxisToPropagationDetails) -> str | None:
    if entry.source in entry.targets:
        return f"axis {entry.axis_name} goes from {entry.source} to itself"
    for target in entry.targets:
        if entry.targets.count(target) > 1:
            return f"axis {entry.axis_name} goes to {target} more than once"
    return None


def _check_entry_on_op(
    entry: AxisToPropagationDetails, mesh: Mesh, operands: int | None, results: int | None
) -> str | None:
    if not mesh.has_axis(entry.axis_name.name):
        return f'unknown axis "{entry.axis_name.name}": it is not in the mesh {mesh}'
    for value in (entry.source, *entry.targets):
        if violation := _check_value(value, operands, results):
            return violation
    return None


def _check_value(value: EdgeValueRef, operands: int | None, results: int | None) -> str | None:
    count = operands if value.type is EdgeNodeType.OPERAND else results
    if count is not None and not 0 <= value.index < count:
        return f"unknown value {value}: the op has {count} {value.type.value}s"
    return None
