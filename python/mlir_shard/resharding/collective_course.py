# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The collectives that take a tensor from one sharding to another.

What makes shards smaller comes first and what makes them larger last: slices, an exchange between devices, all-to-alls,
gathers. Where sizes do not divide each other that may take more than one round. The idea is Shardy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, takewhile

from mlir_shard.resharding.axis_exchange import exchange, is_exchange_useful
from mlir_shard.resharding.collective_steps import CollectiveStep, ExchangeShards, GatherAlong, MoveAxes, SliceAlong
from mlir_shard.resharding.sharding_difference import Difference
from mlir_shard.resharding.slice_first import Shape, slice_axes
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge


def collectives_between(
    source: TensorSharding, target: TensorSharding, shape: Shape, mesh: Mesh
) -> tuple[CollectiveStep, ...]:
    """The collectives from `source` to `target`; the last one has the dimensions of `target`.

    `shape` is that of the whole tensor, with None for dynamic sizes. `mesh` is the one of both but for the order of
    the devices, which is another where the two refer to different meshes. The shardings must be of one rank, and
    unreduced along the same axes. None where both shard alike.
    """
    return tuple(_Course(source, target, shape, mesh).steps())


# Shardy stops after two, which is enough where sizes are powers of two; hardly ever is a third not enough.
MOST_ROUNDS = 3


class _Course:
    def __init__(self, source: TensorSharding, target: TensorSharding, shape: Shape, mesh: Mesh) -> None:
        self._mesh_or_ref = source.mesh_or_ref
        self._target = target
        self._shape = shape
        self._mesh = mesh
        self._steps: list[CollectiveStep] = []
        self._start = [dim.axes for dim in source.dim_shardings]
        self._goal = [dim.axes for dim in target.dim_shardings]
        self._left = Difference(self._start, [()] * len(self._start), mesh)

    def steps(self) -> list[CollectiveStep]:
        """All steps, in order."""
        goal = tuple(chain.from_iterable(self._goal))
        self._gather([_from_first_incompatible(axes, goal) for axes in self._start])
        self._left = Difference(self._left.current, self._goal, self._mesh)
        for _ in range(MOST_ROUNDS):
            if not self._is_done():
                self._round()
        self._gather([len(axes) for axes in self._left.surplus])
        self._slice_what_is_wanted()
        return self._steps

    def _is_done(self) -> bool:
        return self._left.is_closed and self._mesh_or_ref == self._target.mesh_or_ref

    def _round(self) -> None:
        self._slice()
        has_exchanged = is_exchange_useful(self._left) and exchange(self._left)
        if has_exchanged or self._mesh_or_ref != self._target.mesh_or_ref:
            self._mesh_or_ref = self._target.mesh_or_ref
            self._steps.append(ExchangeShards(self._sharding()))
        # Where several dimensions go to one, they go in the order in which it wants them, if that can be.
        self._move(only_in_place=True)
        self._move(only_in_place=False)
        places = self._left.wanted_places()
        unwanted = (takewhile(lambda axis: axis not in places, reversed(axes)) for axes in self._left.surplus)
        self._gather([sum(1 for _ in axes) for axes in unwanted])

    def _sharding(self) -> TensorSharding:
        closed = TensorSharding.closed_with(self._left.current, self._mesh_or_ref)
        return replace(closed, unreduced_axes=self._target.unreduced_axes, reduction_op=self._target.reduction_op)

    def _slice(self) -> None:
        axes_per_dim = slice_axes(self._left, self._shape)
        if any(axes_per_dim):
            self._steps.append(SliceAlong(axes_per_dim, self._sharding()))

    def _slice_what_is_wanted(self) -> None:
        """Slices each dimension along all that it wants, where nothing is surplus."""
        axes_per_dim = tuple(add_axes_or_merge((), axes, self._mesh) for axes in self._left.wanted)
        for dim, wanted in enumerate(self._left.wanted):
            self._left.arrive(dim, tuple(wanted))
        if any(axes_per_dim):
            self._steps.append(SliceAlong(axes_per_dim, self._sharding()))

    def _move(self, *, only_in_place: bool) -> None:
        for dim in range(self._left.rank):
            while (move := _next_move(self._left, dim, only_in_place)) is not None:
                axes = self._left.remove(dim, move.count)
                self._left.arrive(move.tgt_dim, axes)
                merged = add_axes_or_merge((), axes, self._mesh)
                self._steps.append(MoveAxes(merged, dim, move.tgt_dim, self._sharding()))

    def _gather(self, counts: Sequence[int]) -> None:
        """Gathers that many of the last axes of each dimension."""
        removed = [self._left.remove(dim, count) for dim, count in enumerate(counts)]
        axes_per_dim = tuple(add_axes_or_merge((), axes, self._mesh) for axes in removed)
        if any(axes_per_dim):
            self._steps.append(GatherAlong(axes_per_dim, self._sharding()))


@dataclass(frozen=True, slots=True)
class _Move:
    count: int
    tgt_dim: int


def _next_move(left: Difference, dim: int, only_in_place: bool) -> _Move | None:
    """How many of the last axes of a dimension go to one other dimension, and to which."""
    surplus = left.surplus[dim]
    places = left.wanted_places()
    place = places.get(surplus[-1]) if surplus else None
    if place is None or place.dim == dim:
        return None
    same = takewhile(lambda axis: axis in places and places[axis].dim == place.dim, reversed(surplus))
    count = sum(1 for _ in same)
    if only_in_place and surplus[-count:] != left.wanted[place.dim][:count]:
        return None
    return _Move(count, place.dim)


def _from_first_incompatible(axes: Axes, goal: Axes) -> int:
    """How many axes there are from the first one on that no split of its mesh axis has together with one of the goal's.

    A mesh axis of size 6 is 2 times 3 or 3 times 2 devices, and shards along a 2 are none along a 3.
    """
    fits = takewhile(lambda axis: all(axis.can_coexist(other) for other in goal), axes)
    return len(axes) - sum(1 for _ in fits)
