# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the axes that a propagation step adds to tensors, and of the record of many steps."""

from __future__ import annotations

from sharding.texts import sharding

from mlir_shard.sharding import AxisRef, Mesh, OpShardingRule, TensorMapping
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation_edges import AxisMove, EdgeNodeType, EdgeValueRef, axis_moves, propagation_edges

MESH = Mesh({"a": 2, "b": 2, "c": 8}.items())
BINARY = OpShardingRule.pointwise((8, 8), 2)
SPLIT = OpShardingRule((4, 8), (TensorMapping.of((0, 1)),), (TensorMapping.of((0,), (1,)),))
THREE = OpShardingRule((2, 2, 8), (TensorMapping.of((0,), (1,), (2,)),), (TensorMapping.of((0, 1, 2)),))


def moves(rule: OpShardingRule, before: list[str], after: list[str]) -> list[str]:
    count = len(rule.operand_mappings)

    def projection(texts: list[str]) -> ShardingProjection:
        given = [sharding(text) for text in texts]
        return ShardingProjection.build(given[:count], given[count:], rule, MESH)

    found = axis_moves(projection(before), projection(after), rule, MESH)
    return [f"{move.axis} {move.source} {move.target}" for move in found]


def test_the_first_tensor_that_has_an_axis_is_its_source() -> None:
    before = ["[{?}, {?}]", '[{"a", ?}, {?}]', '[{"a", ?}, {"b", ?}]']
    after = ['[{"a", ?}, {"b", ?}]'] * 3
    assert moves(BINARY, before, after) == [
        '"a" operand-1 operand-0',
        '"b" result-0 operand-0',
        '"b" result-0 operand-1',
    ]


def test_a_longer_list_has_the_axes_too() -> None:
    before = ['[{"a", "b"}, {?}]', "[{?}, {?}]", "[{?}, {?}]"]
    after = ['[{"a", "b"}, {?}]', '[{"a", ?}, {?}]', "[{?}, {?}]"]
    assert moves(BINARY, before, after) == ['"a" operand-0 operand-1']


def test_a_sub_axis_that_grows_moves_as_it_is_then() -> None:
    before = ['[{"c":(1)4, ?}, {?}]', '[{"c":(1)2, ?}, {?}]', '[{"c":(1)4, ?}, {?}]']
    after = ['[{"c":(1)4, ?}, {?}]'] * 3
    assert moves(BINARY, before, after) == ['"c":(1)4 operand-0 operand-1']


def test_an_axis_is_split_along_factors() -> None:
    after = ['[{"c", ?}]', '[{"c":(1)4, ?}, {"c":(4)2, ?}]']
    assert moves(SPLIT, ['[{"c", ?}]', "[{?}, {?}]"], after) == [
        '"c":(1)4 operand-0 result-0',
        '"c":(4)2 operand-0 result-0',
    ]


def test_sub_axes_of_all_factors_are_merged() -> None:
    parts = '[{"c":(1)2, ?}, {"c":(2)2, ?}, {"c":(4)2, ?}]'
    assert moves(THREE, [parts, "[{?}]"], [parts, '[{"c", ?}]']) == ['"c" operand-0 result-0']


def test_an_axis_from_nowhere_and_a_closed_dimension_move_nothing() -> None:
    before = ["[{?}, {?}]"] * 3
    assert moves(BINARY, before, ['[{"a", ?}, {?}]', "[{}, {?}]", "[{?}, {?}]"]) == []


def test_edges_are_grouped_by_their_first_step() -> None:
    first, second = (EdgeValueRef(EdgeNodeType.OPERAND, index) for index in range(2))
    result = EdgeValueRef(EdgeNodeType.RESULT, 0)
    axis, sub = AxisRef("c"), AxisRef.sub("c", 1, 2)
    steps = [
        (4, AxisMove(axis, first, result)),
        (2, AxisMove(axis, first, result)),
        (2, AxisMove(axis, first, second)),
        (2, AxisMove(sub, result, first)),
        (3, AxisMove(axis, second, result)),
    ]
    found = propagation_edges(steps)
    assert [step.step_index for step in found.value] == [2, 3]
    entries = [(entry.axis_name, entry.source, entry.targets) for entry in found.value[0].axis_entries]
    assert entries == [(sub, result, (first,)), (axis, first, (second, result))]
    assert propagation_edges([]).value == ()
