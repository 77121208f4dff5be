# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axes, axis, meshes, splits

from mlir_shard.sharding import Mesh
from mlir_shard.sharding.axes import (
    add_axes_or_merge,
    add_axis_or_merge,
    any_overlap,
    axes_difference,
    greatest_common_prefix,
    is_strict_prefix,
    sort_and_merge,
    split_mesh_axes,
    total_size,
    truncate_at_overlap,
)

MESH = Mesh([("x", 2), ("y", 16), ("z", 4)])


def test_adding_merges_what_continues():
    assert add_axis_or_merge((), axis("x"), MESH) == axes("x")
    assert add_axis_or_merge(axes("x y:(1)4"), axis("y:(4)2"), MESH) == axes("x y:(1)8")
    assert add_axis_or_merge(axes("z:(1)2"), axis("z:(2)2"), MESH) == axes("z")
    assert add_axis_or_merge(axes("y:(1)4"), axis("y:(8)2"), MESH) == axes("y:(1)4 y:(8)2")
    assert add_axes_or_merge(axes("x"), axes("y:(2)2 y:(4)2 z"), MESH) == axes("x y:(2)4 z")


def test_sort_and_merge():
    assert sort_and_merge(axes("z y:(4)2 x y:(1)2 y:(2)2"), MESH) == axes("x y:(1)8 z")
    assert sort_and_merge((), MESH) == ()


@pytest.mark.parametrize(
    ("of", "removed", "left"),
    [
        ("x y z", "y", "x z"),
        ("x y", "", "x y"),
        ("y x", "y:(2)2", "y:(1)2 y:(4)4 x"),
        ("y", "y:(1)2 y:(8)2", "y:(2)4"),
        ("y", "y:(8)2 y:(2)2", "y:(1)2 y:(4)2"),
        ("y:(2)4", "y:(1)4", "y:(4)2"),
        ("y:(2)4", "y", ""),
        ("y:(1)2 z", "y:(2)2 z:(2)2", "y:(1)2 z:(1)2"),
    ],
)
def test_difference(of, removed, left):
    assert axes_difference(axes(of), axes(removed), MESH) == axes(left)


@pytest.mark.parametrize(
    ("of", "others", "kept"),
    [
        ("x y z", "", "x y z"),
        ("x y z", "y", "x"),
        ("x y z", "y:(4)2", "x y:(1)4"),
        ("x y z", "x", ""),
        ("y:(2)4 z", "y:(2)2", ""),
        ("y:(2)4 z", "z:(2)2 y:(8)2", "y:(2)4 z:(1)2"),
    ],
)
def test_truncation(of, others, kept):
    assert truncate_at_overlap(axes(of), axes(others)) == axes(kept)


@pytest.mark.parametrize(
    ("one", "other", "strict_prefix", "common"),
    [
        ("", "", False, ""),
        ("", "x", True, ""),
        ("x", "x", False, "x"),
        ("x", "x y", True, "x"),
        ("x y", "x", False, "x"),
        ("x y:(1)2", "x y", True, "x y:(1)2"),
        ("x y:(1)2", "x y:(1)4 z", True, "x y:(1)2"),
        ("x y", "x y:(1)2", False, "x y:(1)2"),
        ("x y:(1)2 z", "x y z", False, "x y:(1)2"),
        ("x z", "x y", False, "x"),
        ("y:(2)2", "y:(1)4", False, ""),
    ],
)
def test_prefixes(one, other, strict_prefix, common):
    assert is_strict_prefix(axes(one), axes(other)) == strict_prefix
    assert greatest_common_prefix(axes(one), axes(other)) == axes(common)
    assert greatest_common_prefix(axes(other), axes(one)) == axes(common)


def test_overlaps_and_sizes():
    assert any_overlap(axes("x y:(2)2"), axes("z y"))
    assert not any_overlap(axes("x y:(2)2"), axes("z y:(4)4"))
    assert total_size(axes("x y:(2)4 z"), MESH) == 32
    assert total_size((), MESH) == 1


def test_splitting_the_mesh():
    assert split_mesh_axes(axes("x y:(2)2"), MESH) == axes("x y:(1)2 y:(2)2 y:(4)4 z")
    assert split_mesh_axes((), MESH) == axes("x y z")


@given(st.data(), meshes())
def test_splitting_and_merging_gives_the_mesh_back(data, mesh):
    parts = data.draw(splits(mesh))
    assert split_mesh_axes(parts, mesh) == tuple(parts)
    assert sort_and_merge(data.draw(st.permutations(parts)), mesh) == axes(" ".join(mesh.axis_names))


@given(st.data(), meshes())
def test_difference_and_removed_make_the_whole(data, mesh):
    parts = data.draw(splits(mesh))
    removed = [part for part in data.draw(st.permutations(parts)) if data.draw(st.booleans())]
    left = axes_difference(axes(" ".join(mesh.axis_names)), removed, mesh)
    assert not any_overlap(left, removed)
    assert sort_and_merge((*left, *removed), mesh) == axes(" ".join(mesh.axis_names))
