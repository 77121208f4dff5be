# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid of a program: the sub-axes of all its collectives must have one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import shared
from mlir_shard.resharding.grid import Grid
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.tensor import mesh_of
from mlir_shard.transforms.shardings import shardings_in


class CommonGrid:
    """The axes and sub-axes in use on each mesh, for which a grid exists.

    An axis of size 6 can be split at 2 or at 3: a grid with sub-axes for both splits does not exist.
    """

    def __init__(self) -> None:
        self._used: dict[Hashable, Axes] = {}

    @staticmethod
    def of(module: Any) -> CommonGrid:
        """Returns the grid of the shardings in a module."""
        grid, meshes = CommonGrid(), sdy.meshes(module)
        for sharding in shardings_in(module):
            mesh = mesh_of(sharding, meshes)
            if mesh is not None and not mesh.is_maximal:
                grid.take(mesh, sharding.used_axes)
        return grid

    def take(self, mesh: Mesh, axes: Iterable[AxisRef]) -> bool:
        """Adds axes of a mesh if a grid has them and all earlier ones; returns whether it has."""
        # Meshes that differ only in the order of their devices have one grid.
        known = self._used.get(mesh.axes, ())
        used = tuple(dict.fromkeys((*known, *axes)))
        if used == known:
            return True
        try:
            Grid.of(mesh, used)
        except ValueError:
            return False
        self._used[mesh.axes] = used
        return True


def common_grid(op: Any) -> CommonGrid:
    """Returns the grid of the module around `op`, which the functions of a run share."""
    module = sdy.enclosing_module(op)
    return shared((CommonGrid, module), lambda: CommonGrid.of(module))
