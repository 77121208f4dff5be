# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists of axes that each factor of an op may get, for factors of any sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, permutations
from math import gcd, lcm
from typing import NamedTuple

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.axes import Axes

NumberedAxes = tuple[list[int], int]
"""The numbers of axes in use, and the number of devices along them."""

MOST_PERMUTED = 3
"""The most axes and sub-axes in use for which all may go to any factor, in any order."""
MOST_COMBINED = 4
"""The most axes in use for which all may go to any factor in the order of the grid; of more, only one axis may."""
MOST_USED = 6
"""The most axes in use for which candidates exist: planning reshards between shardings with more axes takes seconds."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The lists of axes that each factor of an op may get.

    Attributes:
        axes: the candidates of each factor, as axes and sub-axes of the mesh.
        numbered: the same as numbers of axes in use, with the number of devices along them.
        devices: the number of devices along all axes of candidates.
    """

    axes: tuple[tuple[Axes, ...], ...]
    numbered: tuple[tuple[NumberedAxes, ...], ...]
    devices: int


class _Listed(NamedTuple):
    """The candidates of a factor of one size: as in `Candidates`, and all grid axes that they have."""

    axes: tuple[Axes, ...]
    numbered: tuple[NumberedAxes, ...]
    grid_axes: frozenset[int]


class FactorCandidates:
    """The candidates of a factor of any size, which factors of many ops share.

    Args:
        lists: all candidates; those that are not in `given` are only for sizes that the devices along them divide.
        given: the candidates for all sizes.
        grid: the grid of the axes.
        in_use: the grid axes that are numbered.
    """

    def __init__(self, lists: Sequence[GridAxes], given: frozenset[GridAxes], grid: Grid, in_use: GridAxes) -> None:
        self._lists, self._given = lists, given
        self._grid, self._in_use = grid, in_use
        # Sizes with the same common divisors with the numbers of devices have the same candidates.
        self._multiple = lcm(*map(grid.num_devices, lists))
        self._of_divisor: dict[int, _Listed] = {}

    def divisor(self, size: int) -> int:
        """Returns the property of a size on which the candidates depend."""
        return gcd(size, self._multiple) if size > 0 else 0

    def of(self, divisor: int) -> _Listed:
        """Returns the candidates for sizes with this `divisor`."""
        found = self._of_divisor.get(divisor)
        if found is None:
            found = self._of_divisor[divisor] = self._listed(divisor)
        return found

    def _listed(self, divisor: int) -> _Listed:
        grid, given = self._grid, self._given
        lists = [
            axes for axes in self._lists if axes in given or (divisor > 0 and divisor % grid.num_devices(axes) == 0)
        ]
        numbered = tuple([numbered_axes(axes, grid, self._in_use) for axes in lists])
        return _Listed(tuple(map(grid.refs, lists)), numbered, frozenset(chain.from_iterable(lists)))


def numbered_axes(axes: GridAxes, grid: Grid, in_use: GridAxes) -> NumberedAxes:
    """Returns grid axes as numbers of axes in use."""
    return list(map(in_use.index, axes)), grid.num_devices(axes)


def candidates_of_any_size(
    lists: Sequence[Sequence[GridAxes]], rule: OpShardingRule, grid: Grid, in_use: GridAxes
) -> tuple[FactorCandidates, ...]:
    """Returns the candidates of each factor, first those that more tensors with the factor begin with.

    `lists` has the axes that the tensors with each factor have along it. Raises ValueError if more than `MOST_USED`
    axes and sub-axes are in `lists`.
    """
    used = tuple(sorted(set(chain.from_iterable(chain.from_iterable(lists)))))
    if len(used) > MOST_USED:
        raise ValueError(f"{len(used)} axes and sub-axes are in use, more than {MOST_USED}")
    result = []
    for factor, had in enumerate(lists):
        if factor in rule.need_replication_factors:
            result.append(_of_factor((), (), grid, in_use))
        else:
            is_fixed = factor in rule.permutation_factors or rule.is_blocked(factor)
            result.append(_of_factor(tuple(had), () if is_fixed else used, grid, in_use))
    return tuple(result)


@lru_cache(maxsize=4096)
def _of_factor(had: tuple[GridAxes, ...], added: GridAxes, grid: Grid, in_use: GridAxes) -> FactorCandidates:
    """Returns the candidates of a factor along which tensors have the axes `had`, and that may get those of `added`."""
    begins = frozenset({axes[:length] for axes in had for length in range(len(axes) + 1)} | {()})
    ordered = _heaviest_first(begins.union(_continued(begins, added)), {one: _weight(one, had) for one in begins})
    return FactorCandidates(ordered, begins, grid, in_use)


@lru_cache(maxsize=1024)
def _continued(begins: frozenset[GridAxes], used: GridAxes) -> tuple[GridAxes, ...]:
    """Returns each of `begins` followed by axes of `used` that it does not have, in all ways up to the limits above."""
    ways = permutations if len(used) <= MOST_PERMUTED else combinations
    found = []
    for begin in begins:
        others = [axis for axis in used if axis not in begin]
        for count in range(1, (len(others) if len(used) <= MOST_COMBINED else 1) + 1):
            found += [begin + tuple(more) for more in ways(others, count)]
    return tuple(found)


def _heaviest_first(found: Iterable[GridAxes], weights: Mapping[GridAxes, int]) -> list[GridAxes]:
    """Returns lists of axes sorted by descending weight, 0 if it is missing, then by length and axes."""
    return sorted(found, key=lambda axes: (-weights.get(axes, 0), len(axes), axes))


def _weight(axes: GridAxes, had: Sequence[GridAxes]) -> int:
    return sum(len(axes) for other in had if other[: len(axes)] == axes)
