# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings of which only the dimensions up to some priority are there yet.

A dimension whose turn has not come is empty and closed, and its axes are replicated, so that nothing else takes them.
The idea is Shardy's user-priority propagation.
"""

from __future__ import annotations

from dataclasses import replace

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import DEFAULT_PRIORITY, DimensionSharding, TensorSharding


def later_priorities(sharding: TensorSharding) -> frozenset[int]:
    """The priorities of dimensions that are not there from the beginning."""
    return frozenset(dim.priority_or_default for dim in sharding.dim_shardings) - {DEFAULT_PRIORITY}


def first_stage(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """The sharding with the dimensions of priority 0 alone; no dimension has a priority any more."""
    dims: list[DimensionSharding] = []
    replicated: list[AxisRef] = list(sharding.replicated_axes)
    for dim in sharding.dim_shardings:
        if dim.priority_or_default == DEFAULT_PRIORITY:
            dims.append(_without_priority(dim))
        else:
            dims.append(DimensionSharding((), is_closed=True))
            replicated += dim.axes
    replicated.sort(key=lambda axis: axis.mesh_order_key(mesh))
    return replace(sharding, dim_shardings=tuple(dims), replicated_axes=tuple(replicated))


def with_priority(sharding: TensorSharding, original: TensorSharding, priority: int) -> TensorSharding:
    """The sharding with the dimensions that have this priority in `original`, whose axes are replicated no longer."""
    dims = tuple(
        _without_priority(first) if first.priority_or_default == priority else now
        for now, first in zip(sharding.dim_shardings, original.dim_shardings, strict=True)
    )
    taken = {axis for dim in original.dim_shardings if dim.priority_or_default == priority for axis in dim.axes}
    replicated = tuple(axis for axis in sharding.replicated_axes if axis not in taken)
    return replace(sharding, dim_shardings=dims, replicated_axes=replicated)


def without_priorities(sharding: TensorSharding) -> TensorSharding:
    """The sharding with all its dimensions, none with a priority."""
    return replace(sharding, dim_shardings=tuple(map(_without_priority, sharding.dim_shardings)))


def _without_priority(dim: DimensionSharding) -> DimensionSharding:
    return dim if dim.priority is None else replace(dim, priority=None)
