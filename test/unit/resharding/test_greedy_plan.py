# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the collectives between two shardings of a tensor, and of their order."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import meshes, sharding, shardings

from mlir_shard.resharding.greedy_plan import collectives_between
from mlir_shard.resharding.sharding_steps import CollectiveStep, ExchangeShards, GatherAlong, MoveAxes, SliceAlong
from mlir_shard.sharding import (
    AllToAllParam,
    AllToAllParamList,
    AxisRefList,
    ListOfAxisRefLists,
    Mesh,
    ReductionOp,
    TensorSharding,
)
from mlir_shard.sharding.verify import check_all_gather, check_all_slice, check_all_to_all, check_collective_permute

MESH = Mesh({"x": 2, "y": 2, "z": 4, "t": 3, "s": 6}.items())
REVERSED = Mesh(MESH.axes, reversed(range(MESH.total_size)))


def violation(step: CollectiveStep, before: TensorSharding, mesh: Mesh, after_mesh: Mesh) -> str | None:
    """Returns the invariant of the sdy dialect's ops that a step violates, or None."""
    if isinstance(step, ExchangeShards):
        return check_collective_permute(before, step.sharding, mesh, after_mesh)
    if isinstance(step, MoveAxes):
        params = AllToAllParamList((AllToAllParam(step.axes, step.src_dim, step.tgt_dim),))
        return check_all_to_all(before, step.sharding, params, mesh)
    check = check_all_slice if isinstance(step, SliceAlong) else check_all_gather
    return check(before, step.sharding, ListOfAxisRefLists(tuple(map(AxisRefList, step.axes_per_dim))), mesh)


def text(step: CollectiveStep) -> str:
    after = " | ".join(" ".join(map(str, dim.axes)) for dim in step.sharding.dim_shardings).replace('"', "")
    words = {SliceAlong: "slice", GatherAlong: "gather", ExchangeShards: "exchange"}
    word = f"{step.src_dim}->{step.tgt_dim}" if isinstance(step, MoveAxes) else words[type(step)]
    return f"{word}: {after}".rstrip()


def plan(source: str, target: str, shape: tuple[int | None, ...] = (96, 96, 96)) -> list[str]:
    """Returns the steps between shardings given as texts, in which bars separate the dimensions."""
    before, after = (sharding(*map(str.strip, one.split("|"))) for one in (source, target))
    return list(map(text, collectives_between(before, after, shape[: before.rank], MESH)))


@pytest.mark.parametrize(
    ("source", "target", "steps"),
    [
        ("x | y", "x | y", []),
        ("x | y", "x |", ["gather: x |"]),
        ("x y | z", "x |", ["gather: x |"]),
        ("z | x", "z:(1)2 | x", ["gather: z:(1)2 | x"]),
        ("x |", "x | y z", ["slice: x | y z"]),
        ("x | y", "y | x", ["exchange: y | x"]),
        ("x y |", "y x |", ["exchange: y x |"]),
        ("x |", "| x", ["0->1: | x"]),
        ("x y |", "x | y", ["0->1: x | y"]),
        ("z |", "z:(1)2 | z:(2)2", ["0->1: z:(1)2 | z:(2)2"]),
        # A gather comes last, when shards are smallest.
        ("x |", "| y", ["slice: x | y", "gather: | y"]),
        ("x y |", "| y", ["0->1: x | y", "gather: | y"]),
        ("y x |", "| y", ["exchange: x y |", "0->1: x | y", "gather: | y"]),
        # All-to-alls to one dimension are in the order of the target's axes.
        ("y | x |", "| | x y", ["1->2: y |  | x", "0->2: |  | x y"]),
    ],
)
def test_plans(source: str, target: str, steps: list[str]) -> None:
    assert [one.replace("  ", " ") for one in plan(source, target)] == [one.replace("  ", " ") for one in steps]


def test_what_continues_moving_axes_is_sliced_before_they_move() -> None:
    assert plan("| x", "x y |") == ["slice:  | x y", "1->0: x y |"]


def test_but_not_where_the_dimension_does_not_divide_evenly() -> None:
    assert plan("| x", "x y |", (96, 6)) == ["slice: y | x", "exchange: x | y", "1->0: x y |"]
    assert plan("| x", "x y |", (96, None)) == ["slice:  | x y", "1->0: x y |"]


def test_sizes_that_do_not_divide_each_other() -> None:
    assert plan("x |", "t |") == ["slice: x t |", "exchange: t x |", "gather: t |"]
    assert plan("x | t", "t | x") == ["0->1:  | t x", "exchange:  | x t", "1->0: t | x"]
    assert plan("z |", "s |") == ["slice: z s:(1)3 |", "exchange: s z:(1)2 |", "gather: s |"]


def test_sub_axes_that_no_split_has_together_are_gathered_first() -> None:
    assert plan("s:(1)2", "s:(1)3") == ["gather:", "slice: s:(1)3"]
    assert plan("x s:(1)2 y | z", "x s:(1)3 | z") == ["gather: x | z", "slice: x s:(1)3 | z"]


def test_devices_in_another_order_need_an_exchange() -> None:
    before, after = sharding("x", ""), sharding("x", "y", mesh="reversed")
    steps = collectives_between(before, after, (8, 8), MESH)
    assert list(map(text, steps)) == ["slice: x | y", "exchange: x | y"]
    assert [step.sharding.mesh_or_ref for step in steps] == ["mesh", "reversed"]


def test_partial_values_stay_so() -> None:
    before = sharding("x", "", unreduced="y", reduction_op=ReductionOp.MAX)
    after = sharding("", "x", unreduced="y", reduction_op=ReductionOp.MAX)
    (step,) = collectives_between(before, after, (8, 8), MESH)
    assert step.sharding == after


@st.composite
def reshards(
    draw: st.DrawFn, sizes: st.SearchStrategy[int] | None = None
) -> tuple[Mesh, TensorSharding, TensorSharding, tuple[int, ...]]:
    """Draws a mesh, with axes of the given sizes if any, two closed shardings without partial values, and a shape."""
    mesh = draw(meshes()) if sizes is None else Mesh(zip("xyzw", draw(st.lists(sizes, max_size=4)), strict=False))
    rank = draw(st.integers(0, 3))
    source, target = (
        TensorSharding.closed_with((dim.axes for dim in draw(shardings(mesh, rank)).dim_shardings), "mesh")
        for _ in range(2)
    )
    return mesh, source, target, tuple(draw(st.sampled_from([1, 6, 8, 96])) for _ in range(rank))


@given(reshards(), st.booleans())
def test_every_step_is_valid_and_the_last_one_arrives(reshard, is_reordered: bool) -> None:
    mesh, source, target, shape = reshard
    after_mesh = mesh
    if is_reordered:
        after_mesh = Mesh(mesh.axes, reversed(mesh.devices))
        target = replace(target, mesh_or_ref="reordered" if after_mesh != mesh else "mesh")
    now = source
    for step in collectives_between(source, target, shape, mesh):
        assert violation(step, now, mesh, after_mesh) is None
        now = step.sharding
    assert now == target


@given(reshards(st.sampled_from([1, 2, 4, 8])))
def test_shards_are_never_larger_than_before_and_after_where_sizes_are_powers_of_two(reshard) -> None:
    mesh, source, target, shape = reshard
    least = min(blocks(source, mesh), blocks(target, mesh))
    steps = collectives_between(source, target, shape, mesh)
    assert all(blocks(step.sharding, mesh) >= least for step in steps)
    assert not any(isinstance(step, GatherAlong) for step in steps[:-1])


def blocks(of: TensorSharding, mesh: Mesh) -> int:
    return prod(axis.size(mesh) for axis in of.sharding_axes)
