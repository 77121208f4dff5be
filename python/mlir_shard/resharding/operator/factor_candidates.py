# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists of axes that each factor of an op may get, for factors of any sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, permutations

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
class Candidate:
    """Grid axes that a factor may get if the devices along them divide it; `is_given` if it may have any size."""

    axes: GridAxes
    devices: int
    is_given: bool


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


def candidates_of_any_size(
    lists: Sequence[Sequence[GridAxes]], rule: OpShardingRule, grid: Grid
) -> tuple[tuple[Candidate, ...], ...]:
    """Returns the candidates of each factor, first those that more tensors with the factor begin with.

    `lists` has the axes that the tensors with each factor have along it. Raises ValueError if more than `MOST_USED`
    axes and sub-axes are in use.
    """
    used = tuple(sorted(set(chain.from_iterable(chain.from_iterable(lists)))))
    if len(used) > MOST_USED:
        raise ValueError(f"{len(used)} axes and sub-axes are in use, more than {MOST_USED}")
    result: list[tuple[Candidate, ...]] = []
    for factor, had in enumerate(lists):
        if factor in rule.need_replication_factors:
            result.append((Candidate((), 1, True),))
            continue
        begins = frozenset({axes[:length] for axes in had for length in range(len(axes) + 1)} | {()})
        found = set(begins)
        if factor not in rule.permutation_factors and not rule.is_blocked(factor):
            found.update(_continued(begins, used))
        ordered = _heaviest_first(found, {one: _weight(one, had) for one in begins})
        result.append(tuple([Candidate(one, grid.num_devices(one), one in begins) for one in ordered]))
    return tuple(result)


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
