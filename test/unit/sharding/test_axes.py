# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of relations between two axes: tables of results, and invariants of axes that coexist."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sharding.strategies import axis

from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.sharding.layout import axis_coordinate

MESH = Mesh([("a", 16), ("b", 8), ("c", 12)])

# axis, other, contains, prefix of, suffix of, overlaps, can coexist, can merge
RELATIONS = [
    ("a", "a", 1, 1, 1, 1, 1, 0),
    ("a", "b", 0, 0, 0, 0, 1, 0),
    ("a", "a:(2)2", 1, 0, 0, 1, 1, 0),
    ("a:(1)4", "a", 0, 1, 0, 1, 1, 0),
    ("a:(4)4", "a", 0, 0, 1, 1, 1, 0),
    ("a:(4)2", "a", 0, 0, 0, 1, 1, 0),
    ("b:(4)2", "a", 0, 0, 0, 0, 1, 0),
    ("a:(2)4", "a:(2)4", 1, 1, 1, 1, 1, 0),
    ("a:(1)8", "a:(1)4", 1, 0, 0, 1, 1, 0),
    ("a:(1)4", "a:(1)8", 0, 1, 0, 1, 1, 0),
    ("a:(2)8", "a:(4)2", 1, 0, 0, 1, 1, 0),
    ("a:(4)2", "a:(1)8", 0, 0, 1, 1, 1, 0),
    ("a:(1)4", "a:(2)4", 0, 0, 0, 1, 1, 0),
    ("a:(2)4", "a:(1)4", 0, 0, 0, 1, 1, 0),
    ("a:(1)4", "a:(4)2", 0, 0, 0, 0, 1, 1),
    ("a:(4)2", "a:(1)4", 0, 0, 0, 0, 1, 0),
    ("a:(1)2", "a:(4)2", 0, 0, 0, 0, 1, 0),
    ("c:(1)2", "c:(1)3", 0, 1, 0, 1, 0, 0),
    ("c:(1)2", "c:(3)2", 0, 0, 0, 0, 0, 0),
    ("c:(1)3", "c:(2)3", 0, 0, 0, 1, 0, 0),
    ("c:(2)3", "c:(6)2", 0, 0, 0, 0, 1, 1),
    # Sub-axes of different axes always coexist.
    ("b:(1)2", "c:(1)3", 0, 0, 0, 0, 1, 0),
    ("c:(1)3", "b:(1)2", 0, 0, 0, 0, 1, 0),
]

# axis, other, overlap, prefix without overlap, suffix without overlap, greatest common prefix
PARTS = [
    ("a", "a", "a", None, None, "a"),
    ("a", "b", None, "a", "a", None),
    ("a", "a:(2)2", "a:(2)2", "a:(1)2", "a:(4)4", None),
    ("a", "a:(1)4", "a:(1)4", None, "a:(4)4", "a:(1)4"),
    ("a:(1)4", "a", "a:(1)4", None, None, "a:(1)4"),
    ("a:(2)2", "a:(2)2", "a:(2)2", None, None, "a:(2)2"),
    ("a:(1)4", "a:(2)4", "a:(2)2", "a:(1)2", None, None),
    ("a:(2)4", "a:(1)4", "a:(2)2", None, "a:(4)2", None),
    ("a:(1)4", "a:(1)2", "a:(1)2", None, "a:(2)2", "a:(1)2"),
    ("a:(2)8", "a:(4)2", "a:(4)2", "a:(2)2", "a:(8)2", None),
    ("a:(1)4", "a:(4)2", None, "a:(1)4", "a:(1)4", None),
    ("a:(1)2", "a:(4)2", None, "a:(1)2", "a:(1)2", None),
    ("a:(2)8", "a:(2)4", "a:(2)4", None, "a:(8)2", "a:(2)4"),
    ("c:(1)2", "c:(1)3", None, None, None, None),
    ("c:(3)2", "c:(2)3", None, None, None, None),
    ("c:(1)2", "c:(3)2", None, None, None, None),
]


@pytest.mark.parametrize("row", RELATIONS, ids=lambda row: f"{row[0]} {row[1]}")
def test_relations(row):
    one, other = axis(row[0]), axis(row[1])
    assert (
        one.contains(other),
        one.is_prefix_of(other),
        one.is_suffix_of(other, MESH),
        one.overlaps(other),
        one.can_coexist(other),
        one.can_merge(other),
    ) == tuple(map(bool, row[2:]))


@pytest.mark.parametrize("row", PARTS, ids=lambda row: f"{row[0]} {row[1]}")
def test_parts(row):
    one, other = axis(row[0]), axis(row[1])
    assert (
        one.overlap(other),
        one.prefix_without_overlap(other),
        one.suffix_without_overlap(other, MESH),
        one.greatest_common_prefix(other),
    ) == tuple(None if text is None else axis(text) for text in row[2:])


def test_merge():
    assert axis("a:(2)2").merge(axis("a:(4)2"), MESH) == axis("a:(2)4")
    assert axis("b:(1)2").merge(axis("b:(2)4"), MESH) == axis("b")
    with pytest.raises(ValueError, match='"b":\\(4\\)2 does not begin where "b":\\(1\\)2 ends'):
        axis("b:(1)2").merge(axis("b:(4)2"), MESH)


def test_sizes():
    assert (axis("a").size(MESH), axis("a").pre_size, axis("a").next_pre_size(MESH)) == (16, 1, 16)
    assert (axis("a:(2)4").size(MESH), axis("a:(2)4").pre_size, axis("a:(2)4").next_pre_size(MESH)) == (4, 2, 8)


def test_orders():
    ordered = ["a:(1)2", "a:(1)4", "a", "a:(2)2", "a:(2)4", "a:(4)2", "b:(1)2", "b"]
    assert sorted(map(axis, reversed(ordered)), key=AxisRef.lexicographic_key) == list(map(axis, ordered))
    mesh = Mesh([("b", 8), ("a", 16)])
    assert sorted(map(axis, ordered), key=lambda a: a.mesh_order_key(mesh)) == [
        axis(text) for text in ["b:(1)2", "b", *ordered[:6]]
    ]


def test_text():
    assert [str(axis(text)) for text in ("a", "a:(1)2")] == ['"a"', '"a":(1)2']


AXIS_REFS = [AxisRef("c")] + [
    AxisRef.sub("c", pre, size) for pre in (1, 2, 3, 4, 6) for size in (2, 3, 4, 6) if 12 % (pre * size) == 0
]


def coexisting_pairs():
    return [(one, other) for one, other in product(AXIS_REFS, AXIS_REFS) if one.can_coexist(other)]


def place(ref, device):
    return axis_coordinate(ref, Mesh([("c", 12)]), (device,))


@pytest.mark.parametrize(("one", "other"), coexisting_pairs())
def test_containing_is_knowing_the_place(one, other):
    places = {(place(one, device), place(other, device)) for device in range(12)}
    assert one.contains(other) == (len(places) == one.size(MESH))


@pytest.mark.parametrize(("one", "other"), coexisting_pairs())
def test_overlapping_is_being_dependent(one, other):
    places = {(place(one, device), place(other, device)) for device in range(12)}
    assert one.overlaps(other) == (len(places) < one.size(MESH) * other.size(MESH))


@given(st.sampled_from(coexisting_pairs()))
def test_parts_merge_to_the_axis(pair):
    one, other = pair
    if not one.overlaps(other):
        return
    parts = (one.prefix_without_overlap(other), one.overlap(other), one.suffix_without_overlap(other, MESH))
    whole, *rest = (part for part in parts if part is not None)
    for part in rest:
        whole = whole.merge(part, MESH)
    assert whole == one


@given(st.sampled_from(coexisting_pairs()))
def test_symmetry(pair):
    one, other = pair
    assert one.overlap(other) == other.overlap(one)
    assert one.overlaps(other) == other.overlaps(one)
    assert other.can_coexist(one)
    assert one.greatest_common_prefix(other) == other.greatest_common_prefix(one)
