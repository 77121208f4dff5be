# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lists of axes that each factor of an op may get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, permutations

from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.op_cost import OpProblem
from mlir_shard.resharding.steps import GridAxes

MOST_PERMUTED = 3
"""Up to so many axes and sub-axes in use, all may go to any factor in any order."""

MOST_COMBINED = 4
"""Up to so many, in the order of the grid; of more, one."""

MOST_USED = 6
"""With more, there are no candidates: to plan reshards between such shardings takes seconds."""


def grid_of(problem: OpProblem) -> Grid:
    """The grid whose axes the shardings around an op are made of; ValueError where there is none."""
    lists = (
        factor.all_axes for tensor in problem.projection.tensors for factor in tensor.factors if factor is not None
    )
    return Grid.of(problem.mesh, (axis for axes in lists for axis in axes))


def factor_candidates(problem: OpProblem, grid: Grid) -> tuple[tuple[GridAxes, ...], ...]:
    """For each factor the lists of grid axes it may get, those that more of its tensors begin with first.

    Those are the begins of the lists that its tensors have, cut anywhere between grid axes, and each of these followed
    by axes that are in use elsewhere, as far as above, if the factor divides evenly so. A factor that needs
    replication has none but the empty list; none moves to a factor that needs neighbours, or that nothing is to
    propagate along. ValueError where more than `MOST_USED` axes and sub-axes are in use.
    """
    rule, projection = problem.rule, problem.projection
    lists = [
        [grid.axes(sharding.axes) for tensor in projection.tensors if (sharding := tensor.factors[factor]) is not None]
        for factor in range(rule.num_factors)
    ]
    used = tuple(sorted({axis for of_factor in lists for axes in of_factor for axis in axes}))
    if len(used) > MOST_USED:
        raise ValueError(f"{len(used)} axes and sub-axes are in use, more than {MOST_USED}")
    result: list[tuple[GridAxes, ...]] = []
    for factor, had in enumerate(lists):
        if factor in rule.need_replication_factors:
            result.append(((),))
            continue
        begins = {axes[:length] for axes in had for length in range(len(axes) + 1)} | {()}
        found = set(begins)
        if factor not in rule.permutation_factors and not rule.is_blocked(factor):
            size = rule.factor_sizes[factor]
            found |= {one for one in _continued(begins, used) if _divides(grid.num_devices(one), size)}
        result.append(tuple(sorted(found, key=lambda axes: (-_weight(axes, had), len(axes), axes))))
    return tuple(result)


def _continued(begins: Iterable[GridAxes], used: GridAxes) -> Iterator[GridAxes]:
    ways = permutations if len(used) <= MOST_PERMUTED else combinations
    for begin in begins:
        others = [axis for axis in used if axis not in begin]
        for count in range(1, (len(others) if len(used) <= MOST_COMBINED else 1) + 1):
            for more in ways(others, count):
                yield begin + tuple(more)


def _weight(axes: GridAxes, had: list[GridAxes]) -> int:
    return sum(len(axes) for other in had if other[: len(axes)] == axes)


def _divides(blocks: int, size: int) -> bool:
    return size > 0 and size % blocks == 0
