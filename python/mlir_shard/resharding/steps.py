# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps that resharding plans are made of, and what a tensor's placement is to a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mlir_shard.sharding import ReductionOp

# A grid axis by its position in the grid: a plan sees no names and no sub-axes, they have been split off.
GridAxes = tuple[int, ...]


class Placement(NamedTuple):
    """Where a tensor's data lies: the axes of each dimension, major to minor, and the axes it is partial along.

    This is the state of a plan. What a step makes of it is `step.apply(placement)`; that does not check whether blocks
    are even, see `GridTensor.after`.
    """

    dims: tuple[GridAxes, ...]
    unreduced: GridAxes = ()
    reduction: ReductionOp = ReductionOp.SUM

    @property
    def used(self) -> frozenset[int]:
        """The axes along which devices may hold different data."""
        return frozenset(axis for axes in self.dims for axis in axes) | frozenset(self.unreduced)

    def with_dim(self, dim: int, axes: GridAxes) -> Placement:
        """Other axes for dimension `dim`."""
        return Placement((*self.dims[:dim], axes, *self.dims[dim + 1 :]), self.unreduced, self.reduction)

    def gathered(self, dim: int, axes: GridAxes) -> Placement:
        """Without `axes` at the end of `dim`; ValueError where they are not there."""
        kept = len(self.dims[dim]) - len(axes)
        if not axes or kept < 0 or self.dims[dim][kept:] != axes:
            raise ValueError(
                f"grid axes {list(axes)} are not the minor-most of dimension {dim}, {list(self.dims[dim])}"
            )
        return self.with_dim(dim, self.dims[dim][:kept])

    def sliced(self, dim: int, axes: GridAxes) -> Placement:
        """With `axes` at the end of `dim`; ValueError where the placement uses one of them already."""
        taken = self.used.intersection(axes)
        if not axes or taken or len(set(axes)) < len(axes):
            raise ValueError(f"dimension {dim} cannot get grid axes {list(axes)}, as {sorted(taken)} are in use")
        return self.with_dim(dim, self.dims[dim] + axes)

    def reduced(self, axes: GridAxes, reduction: ReductionOp) -> Placement:
        """No longer partial along `axes`; ValueError where it was not, or by another reduction."""
        if not axes or not set(axes) <= set(self.unreduced) or reduction is not self.reduction:
            held = f"{self.reduction.value} along grid axes {list(self.unreduced)}"
            raise ValueError(
                f"a {reduction.value} along grid axes {list(axes)} has to be of partial values, not {held}"
            )
        return self._replace(unreduced=tuple(axis for axis in self.unreduced if axis not in axes))


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Every device of a group along `axes` gets the reduction of what they hold."""

    axes: GridAxes
    reduction: ReductionOp

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where the values are not partial along the axes."""
        return before.reduced(self.axes, self.reduction)


@dataclass(frozen=True, slots=True)
class AllGather:
    """Every device of a group along `axes` gets their blocks, concatenated along `dim` with `axes` major to minor."""

    dim: int
    axes: GridAxes

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where the axes are not the minor-most of the dimension."""
        return before.gathered(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class AllSlice:
    """Every device of a group along `axes` keeps its block of `dim`, numbered by `axes` major to minor."""

    dim: int
    axes: GridAxes

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where the axes are in use."""
        return before.sliced(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class AllToAll:
    """`axes` at the end of `source_dim` go to the end of `target_dim`.

    Every device of a group along `axes` sends each its part of `target_dim`, and concatenates what it gets along
    `source_dim`, both with `axes` major to minor.
    """

    axes: GridAxes
    source_dim: int
    target_dim: int

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where the axes are not the minor-most of the source dimension."""
        if self.source_dim == self.target_dim:
            raise ValueError(f"an all-to-all is between two dimensions, not from {self.source_dim} to itself")
        return before.gathered(self.source_dim, self.axes).sliced(self.target_dim, self.axes)


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """Every device of a group along `axes` gets its block of `dim` of the reduction of what they hold."""

    dim: int
    axes: GridAxes
    reduction: ReductionOp

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where the values are not partial along the axes."""
        return before.reduced(self.axes, self.reduction).sliced(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class CollectivePermute:
    """Every device gets the local tensor of one device and sends its own to one, so that `dims` are the axes after.

    Each dimension has as many blocks after as before, see `device_permutation`.
    """

    dims: tuple[GridAxes, ...]

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError for another rank, or axes twice or of partial values."""
        axes = [*before.unreduced, *(axis for dim in self.dims for axis in dim)]
        if len(self.dims) != len(before.dims) or len(set(axes)) < len(axes):
            raise ValueError(f"grid axes {list(map(list, self.dims))} cannot shard the dimensions of {before}")
        return before._replace(dims=self.dims)


@dataclass(frozen=True, slots=True)
class DirectExchange:
    """Every device sends each other what of its target box it holds, by the messages of `direct_exchange`."""

    target: Placement

    def apply(self, before: Placement) -> Placement:
        """The target; ValueError where it has another rank."""
        if len(self.target.dims) != len(before.dims):
            raise ValueError(f"a tensor of rank {len(before.dims)} cannot become one of rank {len(self.target.dims)}")
        return self.target


OneDimStep = AllGather | AllSlice | AllToAll | ReduceScatter


@dataclass(frozen=True, slots=True)
class Together:
    """Steps of one kind, about different dimensions, carried out as one collective along the axes of all of them."""

    steps: tuple[OneDimStep, ...]

    def __post_init__(self) -> None:
        if len({type(step) for step in self.steps}) != 1:
            raise ValueError(f"{len(self.steps)} steps of different kinds, or none, are not one collective")
        dims = [dim for step in self.steps for dim in _dims(step)]
        if len(set(dims)) < len(dims):
            raise ValueError(f"steps of one collective are about different dimensions, not {dims}")

    def apply(self, before: Placement) -> Placement:
        """The placement after it; ValueError where one of the steps cannot be."""
        for step in self.steps:
            before = step.apply(before)
        return before


def _dims(step: OneDimStep) -> tuple[int, ...]:
    return (step.source_dim, step.target_dim) if isinstance(step, AllToAll) else (step.dim,)


Step = AllReduce | AllGather | AllSlice
"""What a plan of slices, reductions and gathers is made of."""

Move = AllReduce | OneDimStep | CollectivePermute | DirectExchange | Together
"""What any plan is made of."""
