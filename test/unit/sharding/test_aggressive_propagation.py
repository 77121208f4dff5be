# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the aggressive strategy: shardings of an op's tensors before and after propagation."""

from __future__ import annotations

from sharding.texts import sharding, text_of

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation import propagate_aggressive, propagate_basic
from mlir_shard.sharding.rule import TensorMapping

MESH = Mesh({"a": 2, "b": 4, "c": 2}.items())
ADD = OpShardingRule.pointwise((8, 8), 2)
OPEN = "[{?}, {?}]"


def matmul(rows: int, columns: int, inner: int) -> OpShardingRule:
    return OpShardingRule(
        (rows, columns, inner),
        (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
        (TensorMapping.of([0], [1]),),
        reduction_factors=(2,),
    )


def propagated(
    rule: OpShardingRule,
    *dims: str,
    direction: PropagationDirection = PropagationDirection.BOTH,
    conservative: bool = False,
    elementwise: bool = False,
) -> list[str]:
    """Returns the dimension shardings of all tensors after propagation, given the texts of those before."""
    shardings = [sharding(one) for one in dims]
    count = len(rule.operand_mappings)
    before = ShardingProjection.build(shardings[:count], shardings[count:], rule, MESH)
    directions = (direction,) * rule.num_factors
    after = propagate_aggressive(before, rule, MESH, directions, conservative=conservative, elementwise=elementwise)
    operands, results = after.to_shardings(rule, "mesh", MESH)
    return [text_of(one) for one in (*operands, *results)]


def test_a_closed_tensor_does_not_stop_the_others() -> None:
    assert propagated(ADD, '[{"a", ?}, {?}]', "[{}, {?}]", OPEN)[1:] == ["[{}, {?}]", '[{"a", ?}, {?}]']


def test_each_tensor_takes_what_it_can() -> None:
    replicated = '[{?}, {?}], replicated={"b"}'
    after = propagated(ADD, '[{"a", "b", ?}, {?}]', replicated, OPEN)
    assert after[1:] == ['[{"a", ?}, {?}], replicated={"b"}', '[{"a", "b", ?}, {?}]']


def test_the_larger_source_wins() -> None:
    dims = ('[{"a", ?}, {?}]', '[{?}, {"a", ?}]', OPEN)
    assert propagated(matmul(8, 64, 16), *dims)[2] == '[{?}, {"a", ?}]'
    assert propagated(matmul(64, 8, 16), *dims)[2] == '[{"a", ?}, {?}]'


def test_the_more_sharded_factor_wins_through_an_elementwise_op() -> None:
    dims = ('[{"a", ?}, {?}]', '[{?}, {"a", "b", ?}]', OPEN)
    assert propagated(ADD, *dims)[2] == '[{"a", ?}, {?}]'
    assert propagated(ADD, *dims, elementwise=True)[2] == '[{?}, {"a", "b", ?}]'


def test_operands_of_an_elementwise_op_take_no_more_than_the_result_has() -> None:
    dims = ('[{"a", ?}, {?}]', OPEN, "[{}, {?}]")
    assert propagated(ADD, *dims)[1] == '[{"a", ?}, {?}]'
    assert propagated(ADD, *dims, elementwise=True)[1] == OPEN


def test_directions_and_blocked_factors() -> None:
    dims = (OPEN, OPEN, '[{"a", ?}, {?}]')
    assert propagated(ADD, *dims, direction=PropagationDirection.FORWARD) == list(dims)
    assert propagated(ADD, *dims, direction=PropagationDirection.BACKWARD)[0] == '[{"a", ?}, {?}]'
    blocked = OpShardingRule(
        ADD.factor_sizes, ADD.operand_mappings, ADD.result_mappings, blocked_propagation_factors=(0,)
    )
    assert propagated(blocked, *dims) == list(dims)


def test_conservative_propagation_takes_no_part_of_an_axis() -> None:
    dims = ('[{"b", ?}, {?}]', '[{?}, {"b":(2)2, ?}]', OPEN)
    assert propagated(ADD, *dims)[1] == '[{"b":(1)2, ?}, {"b":(2)2, ?}]'
    assert propagated(ADD, *dims, conservative=True)[1] == '[{?}, {"b":(2)2, ?}]'


def test_nothing_to_resolve_is_as_in_the_basic_strategy() -> None:
    rule = matmul(8, 8, 16)
    shardings = [sharding(one) for one in ('[{"a"}, {"b"}]', OPEN, OPEN)]
    before = ShardingProjection.build(shardings[:2], shardings[2:], rule, MESH)
    directions = (PropagationDirection.BOTH,) * 3
    assert propagate_aggressive(before, rule, MESH, directions) == propagate_basic(before, rule, MESH, directions)
