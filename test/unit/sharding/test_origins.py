# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the names of origins, and of the origins of axes that were split or merged."""

from __future__ import annotations

from mlir_shard.sharding import AxisRef
from mlir_shard.sharding import propagation_edges as origin

A, B = AxisRef("a"), AxisRef("b")
HEAD, TAIL = AxisRef.sub("a", 1, 2), AxisRef.sub("a", 2, 4)


def test_names_tell_places_apart() -> None:
    mc = origin.computation_name(0)
    names = [
        *(name(index) for name in (origin.input_origin, origin.output_origin) for index in range(2)),
        *(name(index) for name in (origin.constraint_name, origin.op_name) for index in range(2)),
        origin.computation_input_origin(mc, 0),
        origin.computation_output_origin(mc, 0),
    ]
    assert len(set(names)) == len(names)
    assert names[0] == "input: 0"
    assert names[-1] == "mc_0_output: 0"


def test_a_split_or_merged_axis_is_from_where_the_other_is() -> None:
    assert origin.find_origin({A: "input: 0"}, TAIL) == "input: 0"
    assert origin.find_origin({HEAD: "input: 1", TAIL: "input: 2"}, A) == "input: 1"
    assert origin.find_origin({A: "input: 0", HEAD: "input: 1"}, HEAD) == "input: 1"


def test_nothing_is_known_of_another_axis() -> None:
    assert origin.find_origin({A: "input: 0"}, B) is None
    assert origin.find_origin({HEAD: "input: 0"}, TAIL) is None


def test_axes_are_named_without_quotes_and_the_own_origin_self() -> None:
    found = origin.origins_by_name({HEAD: "input: 0", B: "output: 0"}, "output: 0")
    assert found == {"a:(1)2": "input: 0", "b": origin.SELF}
