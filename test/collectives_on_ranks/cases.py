# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cases: collectives on every grid, along every selection of axes in every order, with random types."""

from __future__ import annotations

import random
from itertools import permutations
from math import prod

from collectives_on_ranks import group_cases, nearby_cases
from collectives_on_ranks.case import Case, Grid
from mlir_shard.runtime.arrays import TensorSpec

GRIDS = {
    2: ((2,), (1, 2), (2, 1, 1)),
    3: ((3,), (3, 1)),
    4: ((4,), (2, 2), (2, 1, 2)),
    6: ((6,), (2, 3), (3, 2), (1, 3, 2)),
    8: ((8,), (2, 4), (2, 2, 2)),
}
ELEMENT_TYPES = ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index", "ui8", "ui64")
SHAPES = ((5,), (1,), (2, 3), (3, 1), (1, 4), (2, 3, 2), (1, 1, 3), (2, 1, 2), (0, 3), (1, 1))
_LARGE = TensorSpec((40_000,), "f64")


def axes_in_every_order(grid: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns every selection of the axes of a grid, in every order; the first is empty."""
    return [axes for count in range(len(grid) + 1) for axes in permutations(range(len(grid)), count)]


def every_case(ranks: int, seed: int) -> list[Case]:
    """Returns cases on all grids of `ranks` devices: each collective along each selection of axes."""
    draw = random.Random(seed * 100 + ranks)
    cases: list[Case] = []
    for shape in GRIDS[ranks]:
        for axes in axes_in_every_order(shape):
            cases += _along(Grid(shape, axes), draw)
    # The message is larger than MPI buffers without a receiver.
    cases.append(nearby_cases.ring(Grid((ranks,), (0,)), _LARGE, draw))
    return cases


def some_cases(ranks: int, seed: int, count: int) -> list[Case]:
    """Returns about `count` cases, the same number for each collective."""
    by_name: dict[str, list[Case]] = {}
    for case in every_case(ranks, seed):
        by_name.setdefault(case.name, []).append(case)
    draw, each = random.Random(seed), -(-count // len(by_name))
    return [case for cases in by_name.values() for case in draw.sample(cases, min(each, len(cases)))]


def _along(grid: Grid, draw: random.Random) -> list[Case]:
    def argument() -> TensorSpec:
        return TensorSpec(draw.choice(SHAPES), draw.choice(ELEMENT_TYPES))

    # Each collective has its own shape and element type.
    count = len(group_cases.of_shape(grid, (1,), "f32", draw))
    cases = []
    for place in range(count):
        drawn = argument()
        cases.append(group_cases.of_shape(grid, drawn.shape, drawn.element_type, draw)[place])
    if grid.axes:
        cases.append(nearby_cases.shift(grid, argument(), draw))
        cases.append(nearby_cases.indices(grid))
        cases.append(nearby_cases.update_halo(grid, draw.choice(ELEMENT_TYPES), draw))
    if prod(grid.sizes) > 1:
        cases.append(nearby_cases.ring(grid, argument(), draw))
        cases.append(nearby_cases.pair(grid, argument(), draw))
    return cases
