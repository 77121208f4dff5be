# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The protocols of the collectives that a partitioner builds, in any dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.windows import WindowHalo
from mlir_shard.rules.reduction import Combiner
from mlir_shard.sharding import ReductionOp

Axis = TypeVar("Axis", contravariant=True)


class CollectiveBuilder(Protocol[Axis]):
    """A builder of collectives on local tensors of static shape, at the current insertion point and location.

    A builder is for the devices of one mesh or grid. `Axis` is the type of its axes: `AxisRef` of a mesh, or the number
    of a grid axis. Lists of axes are major to minor; mappings give the axes of each dimension that takes part. A
    dimension that is sliced, scattered or split is a multiple of the number of devices along its axes.
    """

    def group_size(self, axes: Sequence[Axis]) -> int:
        """Returns the number of devices along axes."""

    def all_gather(self, value: Any, axes: Mapping[int, Sequence[Axis]]) -> Any:
        """Returns the shards of the devices along the axes of each dimension, concatenated along it."""

    def all_slice(self, value: Any, axes: Mapping[int, Sequence[Axis]]) -> Any:
        """Returns this device's shard, along the axes of each dimension, of a value that they have in full."""

    def all_to_all(self, value: Any, moves: Sequence[tuple[int, int, Sequence[Axis]]]) -> Any:
        """Returns the value with axes moved from one dimension to another.

        Args:
            moves: (source dimension, which is concatenated; target dimension, which is split; axes).
        """

    def all_reduce(self, value: Any, axes: Sequence[Axis], kind: ReductionOp | Combiner) -> Any:
        """Returns the reduction over the devices along axes."""

    def reduce_scatter(self, value: Any, axes: Mapping[int, Sequence[Axis]], kind: ReductionOp) -> Any:
        """Returns this device's shard of the reduction over the devices along the axes of all dimensions."""

    def device_index(self, axes: Sequence[Axis]) -> Any:
        """Returns this device's position along axes, as an `index` value."""

    def table(self, axes: Sequence[Axis], entry: Callable[[int], int], element_type: Any = None) -> Any:
        """Returns `entry` of this device's position along axes, as a tensor of one element (of i64 by default)."""


class GridBuilder(CollectiveBuilder[int], Protocol):
    """A builder of the communication between the ops of a local program on a device grid.

    Processes are numbered as in the grid. Layouts are on the mesh whose axes are those of the grid.
    """

    def resized(self, value: Any, shape: Sequence[int]) -> Any:
        """Returns the local tensor cut, or padded with zeros, at the end of each dimension."""

    def permute_shards(self, value: Any, before: Placement, after: Placement) -> Any:
        """Returns the local tensor after a permutation to a placement with as many shards in each dimension."""

    def relocate(self, value: Any, sources: Sequence[int]) -> Any:
        """Returns the local tensor of process `sources[p]` on each process p; `sources` is a permutation."""

    def exchange_tiles(self, value: Any, source: TensorLayout, target: TensorLayout, shape: Sequence[int]) -> Any:
        """Returns the local tensor, of `shape`, after a direct exchange; beyond the global tensor there are zeros."""

    def exchange_halo(self, value: Any, dim: int, axes: GridAxes, halo: WindowHalo) -> Any:
        """Returns the shard with the elements of others in its windows along a dimension, and zeros beyond the ends.

        Args:
            axes: the axes along which the dimension is sharded.
        """

    def broadcast_first(self, value: Any) -> Any:
        """Returns the value of the first process on all of them."""
