# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reshards for the comparison of planners: pairs of shardings along entire mesh axes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, permutations

from mlir_shard.resharding.steps import GridAxes
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding

# The mesh axes of each dimension, by their positions in the mesh.
Dims = tuple[GridAxes, ...]

MESH = "mesh"
"""The symbol of the mesh in programs."""

ELEMENT_SIZE = 4
"""The bytes of an element; tensors are of f32."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A reshard."""

    source: Dims
    target: Dims

    def __str__(self) -> str:
        return f"{listed(self.source)} -> {listed(self.target)}"


@dataclass(frozen=True, slots=True)
class Case:
    """A mesh with axes of `sizes`, and a tensor of `shape` on it."""

    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def title(self) -> str:
        """The mesh and the tensor in words."""
        return f"mesh {'x'.join(map(str, self.sizes))}, tensor {'x'.join(map(str, self.shape))}"

    @property
    def mesh(self) -> Mesh:
        """The mesh, with axes "a", "b", ..."""
        return mesh_of(self.sizes)

    def sharding(self, dims: Dims) -> TensorSharding:
        """Returns the sharding along the axes at these positions."""
        names = self.mesh.axis_names
        return TensorSharding.closed_with(([AxisRef(names[axis]) for axis in axes] for axes in dims), MESH)

    def layout(self, dims: Dims) -> TensorLayout:
        """Returns the layout of the tensor with the sharding along these axes."""
        return TensorLayout(self.sharding(dims), self.mesh, self.shape)

    def pairs(self, most: int, seed: int) -> list[Pair]:
        """Returns all pairs of shardings, or a sample if there are more than `most`."""
        all_dims = every_sharding(len(self.sizes), len(self.shape))
        numbers: list[int] | range = range(len(all_dims) ** 2)
        if len(numbers) > most:
            numbers = sorted(random.Random(seed).sample(numbers, most))
        return [Pair(*(all_dims[index] for index in divmod(number, len(all_dims)))) for number in numbers]


def mesh_of(sizes: Sequence[int]) -> Mesh:
    """Returns the mesh with axes "a", "b", ... of these sizes."""
    return Mesh(zip("abcdefgh", sizes, strict=False))


def every_sharding(num_axes: int, rank: int) -> list[Dims]:
    """Returns all assignments of some of the axes, in any order, to the dimensions."""
    found = []
    for count in range(num_axes + 1):
        for order in permutations(range(num_axes), count):
            for cuts in combinations_with_replacement(range(count + 1), rank - 1):
                found.append(tuple(order[start:stop] for start, stop in pairwise((0, *cuts, count))))
    return found


def listed(dims: Dims) -> str:
    """Returns the axes as nested lists, in the syntax of the shard dialect."""
    return str([list(axes) for axes in dims])
