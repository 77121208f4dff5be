# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shardings inside and outside of a manual computation."""

from __future__ import annotations

from sharding.texts import sharding

from mlir_shard.sharding.tensor import EdgeFrame

OUTER = sharding('[{"a", "b", ?}, {"c"}], replicated={"d"}')
INSIDE = sharding('[{"e", ?}, {?}]')
OUTSIDE = sharding('[{"a", "e", ?}, {"c", ?}], replicated={"d"}')


def test_an_argument_has_its_sources_outside() -> None:
    frame = EdgeFrame(OUTER, ("a", "c", "d"), into_body=True)
    assert frame.as_sources_see(INSIDE) == OUTSIDE
    assert frame.as_targets_see(OUTSIDE) == INSIDE


def test_a_result_has_its_sources_inside() -> None:
    frame = EdgeFrame(OUTER, ("a", "c", "d"), into_body=False)
    assert frame.as_sources_see(OUTSIDE) == INSIDE
    assert frame.as_targets_see(INSIDE) == OUTSIDE
