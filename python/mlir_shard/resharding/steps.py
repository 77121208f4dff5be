# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps that resharding plans are made of, and what a tensor's placement is to a plan."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_shard.sharding import ReductionOp

# A grid axis by its position in the grid: a plan sees no names and no sub-axes, they have been split off.
GridAxes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a tensor's data lies: the axes of each dimension, major to minor, and the axes it is partial along."""

    dims: tuple[GridAxes, ...]
    unreduced: GridAxes = ()
    reduction: ReductionOp = ReductionOp.SUM

    @property
    def used(self) -> frozenset[int]:
        """The axes along which devices may hold different data."""
        return frozenset(axis for axes in self.dims for axis in axes) | frozenset(self.unreduced)


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Every device of a group along `axes` gets the reduction of what they hold."""

    axes: GridAxes
    reduction: ReductionOp


@dataclass(frozen=True, slots=True)
class AllGather:
    """Every device of a group along `axes` gets their blocks, concatenated along `dim` with `axes` major to minor."""

    dim: int
    axes: GridAxes


@dataclass(frozen=True, slots=True)
class AllSlice:
    """Every device of a group along `axes` keeps its block of `dim`, numbered by `axes` major to minor."""

    dim: int
    axes: GridAxes


Step = AllReduce | AllGather | AllSlice
