# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All shardings of a tensor on a mesh, for tests of every pair of them or of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, permutations, product
from math import prod
from typing import Any

import numpy as np

from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import add_axes_or_merge, sort_and_merge


def mesh_of(*sizes: int, device_ids: Sequence[int] = ()) -> Mesh:
    """Returns a mesh with axes "a", "b", ... of these sizes."""
    return Mesh(zip("abcdefgh", sizes, strict=False), device_ids)


def full_axes(mesh: Mesh) -> tuple[AxisRef, ...]:
    return tuple(map(AxisRef, mesh.axis_names))


def halves(mesh: Mesh) -> tuple[AxisRef, ...]:
    """Returns the axes of the mesh, with axes of size 4 split in two."""
    result: list[AxisRef] = []
    for axis in mesh.axes:
        cut = [AxisRef.sub(axis.name, 1, 2), AxisRef.sub(axis.name, 2, 2)]
        result += cut if axis.size == 4 else [AxisRef(axis.name)]
    return tuple(result)


def shardings(mesh: Mesh, parts: Sequence[AxisRef], rank: int, *, unreduced: bool = False) -> list[TensorSharding]:
    """Returns every assignment of parts, in any order, to the dimensions, and with `unreduced` to partial values."""
    found: dict[Any, TensorSharding] = {}
    for count in range(len(parts) + 1):
        for used, places in product(combinations(parts, count), _ascending(rank + unreduced, count)):
            for order in permutations(used):
                lists = [[axis for axis, at in zip(order, places, strict=True) if at == place] for place in range(rank)]
                rest = [axis for axis, at in zip(order, places, strict=True) if at == rank]
                dims = tuple(DimensionSharding(add_axes_or_merge((), axes, mesh), True) for axes in lists)
                one = TensorSharding("mesh", dims, (), sort_and_merge(rest, mesh))
                found[one] = one
    return list(found)


def _ascending(places: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yields the ascending places of the axes; permutations of the axes give all other assignments."""
    return (one for one in product(range(places), repeat=count) if all(a <= b for a, b in pairwise(one)))


def distinct_values(layout: TensorLayout) -> Any:
    """Returns partial values of a tensor in which no two elements and no two sums of partial values are equal."""
    elements = prod(layout.shape)
    values = np.arange(layout.partials * elements, dtype=np.float64) + 1
    reduced = ReductionOp.SUM if layout.partials > 1 else None
    return (values**2 if reduced else values).reshape((layout.partials, *layout.shape))
