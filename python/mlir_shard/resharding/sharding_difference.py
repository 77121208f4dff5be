# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The difference between two shardings, dimension by dimension, and the axes to slice along first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, takewhile
from math import gcd

from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.axes import Axes, add_axes_or_merge, total_size


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the wanted axes of a dimension."""

    dim: int
    index: int


class Difference:
    """The remaining difference from one sharding to another; it is closed if no dimension has surplus or wanted axes.

    `current` are the axes that each dimension has now, `surplus` the axes at its end that it should not have there,
    `wanted` the axes that it should have instead.
    """

    def __init__(self, source: Sequence[Axes], target: Sequence[Axes], mesh: Mesh) -> None:
        self.mesh = mesh
        self.current = list(source)
        before, after = list(chain.from_iterable(source)), list(chain.from_iterable(target))
        self.surplus = [cut_at_boundaries(axes, after, mesh) for axes in source]
        self.wanted = [cut_at_boundaries(axes, before, mesh) for axes in target]
        for surplus, wanted in zip(self.surplus, self.wanted, strict=True):
            common = sum(1 for _ in _common_prefix(surplus, wanted))
            del surplus[:common], wanted[:common]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.current)

    @property
    def is_closed(self) -> bool:
        """Whether the difference is empty."""
        return not any(self.surplus) and not any(self.wanted)

    def surplus_axes(self) -> frozenset[AxisRef]:
        """Returns the axes that are surplus in some dimension."""
        return frozenset(chain.from_iterable(self.surplus))

    def wanted_places(self) -> dict[AxisRef, Place]:
        """Returns the place of each wanted axis."""
        return {axis: Place(dim, index) for dim, axes in enumerate(self.wanted) for index, axis in enumerate(axes)}

    def append(self, dim: int, axes: Iterable[AxisRef]) -> None:
        """Shards a dimension further, without recording the axes as surplus."""
        self.current[dim] = add_axes_or_merge(self.current[dim], axes, self.mesh)

    def remove(self, dim: int, count: int) -> Axes:
        """Removes the last surplus axes of a dimension and returns them."""
        surplus = self.surplus[dim]
        start = len(surplus) - count
        removed = tuple(surplus[start:])
        del surplus[start:]
        self.current[dim] = _without_last(self.current[dim], removed)
        return removed

    def arrive(self, dim: int, axes: Iterable[AxisRef]) -> None:
        """Shards a dimension further; axes that do not arrive at the place where they are wanted become surplus."""
        for axis in axes:
            self.append(dim, (axis,))
            if not self.surplus[dim] and self.wanted[dim][:1] == [axis]:
                del self.wanted[dim][0]
            else:
                self.surplus[dim].append(axis)

    def distribute(
        self, available: Sequence[list[AxisRef]], capacities: list[int], *, at_front: bool
    ) -> tuple[Axes, ...]:
        """Makes available axes surplus, in each dimension as many as its capacity holds, and returns them.

        `available` has a list for each dimension, which may be the same list for all; taken axes are removed from it.
        An axis larger than the capacity left is cut, and so are the wanted axes. `capacities` are reduced to the
        capacities left.
        """
        added: list[Axes] = []
        cuts: list[AxisRef] = []
        for dim, axes in enumerate(available):
            taken: list[AxisRef] = []
            for axis in list(axes):
                fit = fit_in(axis, capacities[dim], self.mesh)
                if fit is None:
                    continue
                capacities[dim] = fit.capacity
                taken.append(fit.within)
                axes.remove(axis)
                if fit.rest is not None:
                    cuts.append(fit.within)
                    axes.insert(0, fit.rest)
            self.surplus[dim][:] = taken + self.surplus[dim] if at_front else self.surplus[dim] + taken
            added.append(tuple(taken))
        self.wanted = [cut_at_boundaries(axes, cuts, self.mesh) for axes in self.wanted]
        return tuple(added)


@dataclass(frozen=True, slots=True)
class Fit:
    """The part of an axis within a capacity, the part beyond it, and the capacity left."""

    within: AxisRef
    rest: AxisRef | None
    capacity: int


def fit_in(axis: AxisRef, capacity: int, mesh: Mesh) -> Fit | None:
    """Returns how an axis fits in a capacity, a number of shards; None if that is 1, or neither divides the other."""
    size = axis.size(mesh)
    if size == 1:
        return Fit(axis, None, capacity)
    if capacity <= 1 or not divides_either_way(size, capacity):
        return None
    if capacity >= size:
        return Fit(axis, None, capacity // size)
    within = AxisRef.sub(axis.name, axis.pre_size, capacity)
    return Fit(within, AxisRef.sub(axis.name, axis.pre_size * capacity, size // capacity), 1)


def divides_either_way(a: int, b: int) -> bool:
    """Returns whether one number is a multiple of the other."""
    return a % b == 0 or b % a == 0


def cut_at_boundaries(axes: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Returns the axes, each cut where one of `others` begins or ends inside it; all can coexist with it."""
    bounds: dict[str, set[int]] = {}
    for other in others:
        bounds.setdefault(other.name, set()).update((other.pre_size, other.next_pre_size(mesh)))
    result: list[AxisRef] = []
    for axis in axes:
        begin, end = axis.pre_size, axis.next_pre_size(mesh)
        inside = sorted(bound for bound in bounds.get(axis.name, ()) if begin < bound < end)
        if inside:
            pairs = pairwise((begin, *inside, end))
            result += [AxisRef.sub(axis.name, low, high // low) for low, high in pairs]
        else:
            result.append(axis)
    return result


def _common_prefix(axes: Sequence[AxisRef], others: Sequence[AxisRef]) -> Iterable[AxisRef]:
    for axis, other in zip(axes, others, strict=False):
        if axis != other:
            return
        yield axis


def _without_last(axes: Axes, removed: Axes) -> Axes:
    """Returns the axes without the axes `removed` at their end, which may be merged with an axis that stays."""
    for axis in reversed(removed):
        rest = axes[-1].prefix_without_overlap(axis)
        axes = axes[:-1] if rest is None else (*axes[:-1], rest)
    return axes


Shape = Sequence[int | None]


def slice_axes(left: Difference, shape: Shape) -> tuple[Axes, ...]:
    """Shards `left` further along wanted axes that it is not sharded along, and returns them for each dimension.

    First, if a dimension will give its axes to another one that continues them, it is sliced along the continuation.
    Then each dimension is sliced along the axes it wants itself, then along any that fit. None in `shape` is a dynamic
    size.
    """
    mesh = left.mesh
    sizes = [
        (total_size(surplus, mesh), total_size(wanted, mesh))
        for surplus, wanted in zip(left.surplus, left.wanted, strict=True)
    ]
    capacities = [after // gcd(before, after) for before, after in sizes]
    sliced: list[Axes] = [()] * left.rank

    def slice_dim(dim: int, axes: Sequence[AxisRef]) -> None:
        sliced[dim] = add_axes_or_merge(sliced[dim], axes, mesh)
        left.append(dim, axes)

    for dim in range(left.rank):
        ahead = _slices_ahead(left, dim, shape[dim])
        if ahead is not None:
            capacities[ahead.target] //= ahead.blocks
            slice_dim(dim, ahead.axes)
            left.surplus[dim] += ahead.axes
    others: list[AxisRef] = []
    used = left.surplus_axes()
    for dim in range(left.rank):
        slice_dim(dim, _slice_in_place(left, dim, capacities, used, others))
    for dim, axes in enumerate(left.distribute([others] * left.rank, capacities, at_front=False)):
        slice_dim(dim, axes)
    return tuple(sliced)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Axes to slice along before an all-to-all to `target`, and the number of shards that arrive there."""

    axes: Axes
    target: int
    blocks: int


def _slices_ahead(left: Difference, dim: int, size: int | None) -> _Ahead | None:
    """Returns the axes to slice `dim` along so that one all-to-all moves its axes and their continuation in place.

    Returns None if anything else has to be exchanged in the two dimensions, or if the dimension does not divide evenly.
    """
    surplus, mesh = left.surplus[dim], left.mesh
    places = left.wanted_places()
    if not surplus or left.wanted[dim] or surplus[-1] not in places:
        return None
    place = places[surplus[-1]]
    wanted = left.wanted[place.dim]
    used = left.surplus_axes()
    following = tuple(takewhile(lambda axis: axis not in used, wanted[place.index + 1 :]))
    if left.surplus[place.dim] or not following:
        return None
    pairs = zip(reversed(surplus), reversed(wanted[: place.index + 1]), strict=False)
    moving = [axis for axis, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    staying = surplus[: len(surplus) - len(moving)]
    if any(axis in places and places[axis].dim == place.dim for axis in staying):
        return None
    if size is not None and size % total_size(chain(left.current[dim], following), mesh):
        return None
    return _Ahead(following, place.dim, total_size(chain(moving, following), mesh))


def _slice_in_place(
    left: Difference, dim: int, capacities: list[int], used: frozenset[AxisRef], others: list[AxisRef]
) -> list[AxisRef]:
    """Returns the wanted axes of a dimension that fit in its capacity; the unused ones that do not go to `others`."""
    taken: list[AxisRef] = []
    wanted: list[AxisRef] = []
    for axis in left.wanted[dim]:
        fit = None if axis in used else fit_in(axis, capacities[dim], left.mesh)
        if fit is None:
            wanted.append(axis)
            others += [] if axis in used else [axis]
            continue
        capacities[dim] = fit.capacity
        taken.append(fit.within)
        if wanted or left.surplus[dim]:
            left.surplus[dim].append(fit.within)
            wanted.append(fit.within)
        if fit.rest is not None:
            wanted.append(fit.rest)
            others.append(fit.rest)
    left.wanted[dim] = wanted
    return taken
