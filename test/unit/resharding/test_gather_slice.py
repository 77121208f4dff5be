# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of slices, reductions and gathers, carried out on NumPy blocks."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from mlir_shard.resharding.simple_plans import NoPlan, gather_slice_plan
from mlir_shard.resharding.steps import AllGather, AllReduce, AllSlice, GridAxes, Placement, Step
from mlir_shard.sharding import ReductionOp

Blocks = dict[tuple[int, ...], Any]


def placements(axes: int, rank: int) -> list[Placement]:
    """Every way to give some of the axes, in some order, to the dimensions."""
    found = set()
    for order in permutations(range(axes)):
        for where in product(range(rank + 1), repeat=axes):
            dims = tuple(tuple(axis for axis, dim in zip(order, where, strict=True) if dim == d) for d in range(rank))
            found.add(Placement(dims))
    return sorted(found, key=lambda one: one.dims)


def groups(grid: tuple[int, ...], axes: GridAxes, device: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The devices along the axes from `device`, in the order of the axes."""
    result = []
    for position in product(*(range(grid[axis]) for axis in axes)):
        coordinates = list(device)
        for axis, index in zip(axes, position, strict=True):
            coordinates[axis] = index
        result.append(tuple(coordinates))
    return result


def place(tensor: Any, placement: Placement, grid: tuple[int, ...]) -> Blocks:
    blocks = {}
    for device in product(*map(range, grid)):
        block = tensor
        for dim, axes in enumerate(placement.dims):
            group = groups(grid, axes, device)
            block = np.split(block, len(group), axis=dim)[group.index(device)]
        blocks[device] = block
    return blocks


def carry_out(blocks: Blocks, step: Step, grid: tuple[int, ...]) -> Blocks:
    result = {}
    for device, block in blocks.items():
        group = groups(grid, step.axes, device)
        if isinstance(step, AllGather):
            result[device] = np.concatenate([blocks[other] for other in group], axis=step.dim)
        elif isinstance(step, AllSlice):
            result[device] = np.split(block, len(group), axis=step.dim)[group.index(device)]
        else:
            assert step.reduction is ReductionOp.SUM
            result[device] = np.sum([blocks[other] for other in group], axis=0)
    return result


@pytest.mark.parametrize(("grid", "rank"), [((2, 2), 2), ((2, 3), 2), ((2, 2, 2), 1), ((4,), 3)])
def test_every_pair_arrives(grid: tuple[int, ...], rank: int) -> None:
    size = int(np.prod(grid))
    tensor = np.arange(size**rank).reshape((size,) * rank)
    for source, target in product(placements(len(grid), rank), repeat=2):
        blocks = place(tensor, source, grid)
        for step in gather_slice_plan(source, target):
            blocks = carry_out(blocks, step, grid)
        wanted = place(tensor, target, grid)
        for device, block in blocks.items():
            assert np.array_equal(block, wanted[device]), (source, target, gather_slice_plan(source, target))


def test_nothing_to_do() -> None:
    placement = Placement(((0, 1), ()))
    assert gather_slice_plan(placement, placement) == ()


def test_slices_alone_where_axes_are_added() -> None:
    assert gather_slice_plan(Placement(((), (0,))), Placement(((1,), (0, 2)))) == (AllSlice(0, (1,)), AllSlice(1, (2,)))


def test_only_what_differs_is_gathered() -> None:
    assert gather_slice_plan(Placement(((0, 1, 2),)), Placement(((0,),))) == (AllGather(0, (1, 2)),)


def test_partial_values_are_reduced_after_slicing_what_is_free() -> None:
    source = Placement(((), ()), unreduced=(0,))
    assert gather_slice_plan(source, Placement(((1,), ()))) == (AllSlice(0, (1,)), AllReduce((0,), ReductionOp.SUM))
    # The axis of the partial values is not free before.
    assert gather_slice_plan(source, Placement(((0,), ()))) == (AllReduce((0,), ReductionOp.SUM), AllSlice(0, (0,)))


def test_values_stay_partial_where_the_target_is() -> None:
    source = Placement(((0,),), unreduced=(1, 2), reduction=ReductionOp.MAX)
    target = Placement(((),), unreduced=(2,), reduction=ReductionOp.MAX)
    assert gather_slice_plan(source, target) == (AllReduce((1,), ReductionOp.MAX), AllGather(0, (0,)))


def test_values_do_not_become_partial() -> None:
    with pytest.raises(NoPlan, match=r"unreduced along grid axes \[1\]"):
        gather_slice_plan(Placement(((),)), Placement(((),), unreduced=(1,)))
    with pytest.raises(NoPlan, match="an unreduced sum cannot become an unreduced max"):
        gather_slice_plan(Placement(((),), unreduced=(1,)), Placement(((),), unreduced=(1,), reduction=ReductionOp.MAX))
