# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shardings with dimensions of later priorities, and of the combination of propagation directions."""

from __future__ import annotations

import pytest
from sharding.texts import sharding

from mlir_shard.sharding import Mesh, PropagationDirection
from mlir_shard.sharding.tensor import first_stage, later_priorities, with_priority

MESH = Mesh({"a": 2, "b": 2, "c": 2}.items())


def test_dimensions_of_later_priorities_wait_replicated() -> None:
    original = sharding('[{"c", ?}p0, {"b", ?}p2, {"a"}p1, {?}]')
    assert later_priorities(original) == {1, 2}
    assert first_stage(original, MESH) == sharding('[{"c", ?}, {}, {}, {?}], replicated={"a", "b"}')


def test_each_priority_brings_its_dimensions_back() -> None:
    original = sharding('[{?}, {"b", ?}p2, {"a"}p1]')
    now = sharding('[{"c", ?}, {}, {}], replicated={"a", "b"}')
    then = with_priority(now, original, 1)
    assert then == sharding('[{"c", ?}, {}, {"a"}], replicated={"b"}')
    assert with_priority(then, original, 2) == sharding('[{"c", ?}, {"b", ?}, {"a"}]')


def test_a_sharding_without_priorities_stays() -> None:
    original = sharding('[{"a", ?}, {}], replicated={"c"}')
    assert not later_priorities(original)
    assert first_stage(original, MESH) == original


@pytest.mark.parametrize("one", PropagationDirection)
@pytest.mark.parametrize("other", PropagationDirection)
def test_directions_combine_as_sets_of_ways(one: PropagationDirection, other: PropagationDirection) -> None:
    ways = {
        PropagationDirection.NONE: set(),
        PropagationDirection.FORWARD: {"forward"},
        PropagationDirection.BACKWARD: {"backward"},
        PropagationDirection.BOTH: {"forward", "backward"},
    }
    assert ways[one.union(other)] == ways[one] | ways[other]
    assert ways[one.intersection(other)] == ways[one] & ways[other]
