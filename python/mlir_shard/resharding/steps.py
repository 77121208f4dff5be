# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of resharding plans, and the placements of a tensor before and after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mlir_shard.sharding import ReductionOp

# Grid axes by their positions in the grid: plans use neither names nor sub-axes, which the grid has split off.
GridAxes = tuple[int, ...]


class Placement(NamedTuple):
    """The placement of a tensor: the axes of each dimension, major to minor, and the axes along which it is partial.

    This is the state of a plan. `step.apply(placement)` returns the placement after a step; it does not check whether
    shards nest, see `GridTensor.after`.
    """

    dims: tuple[GridAxes, ...]
    unreduced: GridAxes = ()
    reduction: ReductionOp = ReductionOp.SUM

    @property
    def used(self) -> frozenset[int]:
        """The axes along which devices may hold different data."""
        return frozenset(self.unreduced).union(*self.dims)

    @property
    def is_replicated(self) -> bool:
        """Whether all devices hold the same data."""
        return not self.unreduced and not any(self.dims)

    def with_dim(self, dim: int, axes: GridAxes) -> Placement:
        """Returns the placement with other axes for dimension `dim`."""
        return Placement((*self.dims[:dim], axes, *self.dims[dim + 1 :]), self.unreduced, self.reduction)

    def gathered(self, dim: int, axes: GridAxes) -> Placement:
        """Returns the placement without `axes` at the end of `dim`. Raises ValueError if they are not there."""
        kept = len(self.dims[dim]) - len(axes)
        if not axes or kept < 0 or self.dims[dim][kept:] != axes:
            raise ValueError(
                f"grid axes {list(axes)} are not the minor-most of dimension {dim}, {list(self.dims[dim])}"
            )
        return self.with_dim(dim, self.dims[dim][:kept])

    def sliced(self, dim: int, axes: GridAxes) -> Placement:
        """Returns the placement with `axes` at the end of `dim`. Raises ValueError if one of them is already in use."""
        taken = self.used.intersection(axes)
        if not axes or taken or len(set(axes)) < len(axes):
            raise ValueError(f"dimension {dim} cannot get grid axes {list(axes)}, as {sorted(taken)} are in use")
        return self.with_dim(dim, self.dims[dim] + axes)

    def reduced(self, axes: GridAxes, reduction: ReductionOp) -> Placement:
        """Returns the placement reduced along `axes`.

        Raises ValueError if it is not partial along them, or by another reduction.
        """
        if not axes or not set(axes) <= set(self.unreduced) or reduction is not self.reduction:
            held = f"{self.reduction.value} along grid axes {list(self.unreduced)}"
            raise ValueError(f"a {reduction.value} along grid axes {list(axes)} requires partial values, got {held}")
        return self._replace(unreduced=tuple(axis for axis in self.unreduced if axis not in axes))


@dataclass(frozen=True, slots=True)
class AllReduce:
    """An all-reduce: every device of a group along `axes` gets the reduction of the group's local tensors."""

    axes: GridAxes
    reduction: ReductionOp

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step. Raises ValueError if the values are not partial along the axes."""
        return before.reduced(self.axes, self.reduction)


@dataclass(frozen=True, slots=True)
class AllGather:
    """An all-gather: every device of a group along `axes` gets the group's shards, concatenated along `dim`.

    The shards are in the order of `axes`, major to minor.
    """

    dim: int
    axes: GridAxes

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step. Raises ValueError if the axes are not minor-most in the dimension."""
        return before.gathered(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class AllSlice:
    """A slice: every device of a group along `axes` keeps its part of `dim`, numbered by `axes` major to minor."""

    dim: int
    axes: GridAxes

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step. Raises ValueError if the axes are in use."""
        return before.sliced(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class AllToAll:
    """An all-to-all, which moves `axes` from the end of `source_dim` to the end of `target_dim`.

    Every device of a group along `axes` sends each device its part along `target_dim`, and concatenates the parts it
    receives along `source_dim`, both with `axes` major to minor.
    """

    axes: GridAxes
    source_dim: int
    target_dim: int

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step.

        Raises ValueError if the axes are not minor-most in the source dimension, or the two dimensions are the same.
        """
        if self.source_dim == self.target_dim:
            raise ValueError(f"an all-to-all must be between two dimensions, not from {self.source_dim} to itself")
        return before.gathered(self.source_dim, self.axes).sliced(self.target_dim, self.axes)


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """A reduce-scatter: every device of a group along `axes` gets its part along `dim` of the group's reduction."""

    dim: int
    axes: GridAxes
    reduction: ReductionOp

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step. Raises ValueError if the values are not partial along the axes."""
        return before.reduced(self.axes, self.reduction).sliced(self.dim, self.axes)


@dataclass(frozen=True, slots=True)
class CollectivePermute:
    """A permutation of local tensors: every device sends its own to one device and gets that of one device.

    `dims` are the axes after it. Each dimension has as many shards after as before, see `device_permutation`.
    """

    dims: tuple[GridAxes, ...]

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the step.

        Raises ValueError if the rank differs, or if an axis is used twice or has partial values.
        """
        axes = [*before.unreduced, *(axis for dim in self.dims for axis in dim)]
        if len(self.dims) != len(before.dims) or len(set(axes)) < len(axes):
            raise ValueError(f"grid axes {list(map(list, self.dims))} cannot shard the dimensions of {before}")
        return before._replace(dims=self.dims)


@dataclass(frozen=True, slots=True)
class DirectExchange:
    """A direct exchange: devices send each other parts of their target boxes, by the messages of `direct_exchange`."""

    target: Placement

    def apply(self, before: Placement) -> Placement:
        """Returns the target. Raises ValueError if it has another rank."""
        if len(self.target.dims) != len(before.dims):
            raise ValueError(f"a tensor of rank {len(before.dims)} cannot become one of rank {len(self.target.dims)}")
        return self.target


OneDimStep = AllGather | AllSlice | AllToAll | ReduceScatter


@dataclass(frozen=True, slots=True)
class Together:
    """Steps of one kind on different dimensions, carried out as one collective along the axes of all of them."""

    steps: tuple[OneDimStep, ...]

    def __post_init__(self) -> None:
        if len({type(step) for step in self.steps}) != 1:
            raise ValueError(
                f"{len(self.steps)} steps cannot form one collective: expected one or more steps of the same kind"
            )
        dims = [dim for step in self.steps for dim in _dims(step)]
        if len(set(dims)) < len(dims):
            raise ValueError(f"steps of one collective must be for different dimensions, got {dims}")

    def apply(self, before: Placement) -> Placement:
        """Returns the placement after the steps. Raises ValueError if one of the steps is not possible."""
        for step in self.steps:
            before = step.apply(before)
        return before


def _dims(step: OneDimStep) -> tuple[int, ...]:
    return (step.source_dim, step.target_dim) if isinstance(step, AllToAll) else (step.dim,)


Step = AllReduce | AllGather | AllSlice
"""The steps of a plan of slices, reductions and gathers."""

Move = AllReduce | OneDimStep | CollectivePermute | DirectExchange | Together
"""The moves of any plan."""
