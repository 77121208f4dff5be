# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the basic strategy: shardings of an op's tensors before and after propagation."""

from __future__ import annotations

import pytest
from sharding.texts import sharding, text_of

from mlir_shard.sharding import Mesh, OpShardingRule, PropagationDirection
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.propagation import propagate_basic
from mlir_shard.sharding.rule import TensorMapping

MESH = Mesh({"a": 2, "b": 4, "c": 2}.items())
ADD = OpShardingRule.pointwise((8, 8), 2)
MATMUL = OpShardingRule(
    (8, 8, 16),
    (TensorMapping.of([0], [2]), TensorMapping.of([2], [1])),
    (TensorMapping.of([0], [1]),),
    reduction_factors=(2,),
)
# ([ij])->([i, j]) with i=2
RESHAPE = OpShardingRule((2, 8), (TensorMapping.of([0, 1]),), (TensorMapping.of([0], [1]),))


def propagated(
    rule: OpShardingRule,
    *dims: str,
    direction: PropagationDirection = PropagationDirection.BOTH,
    conservative: bool = False,
) -> list[str]:
    """Returns the dimension shardings of all tensors after propagation, given the texts of those before."""
    shardings = [sharding(one) for one in dims]
    count = len(rule.operand_mappings)
    before = ShardingProjection.build(shardings[:count], shardings[count:], rule, MESH)
    after = propagate_basic(before, rule, MESH, (direction,) * rule.num_factors, conservative=conservative)
    operands, results = after.to_shardings(rule, "mesh", MESH)
    return [text_of(one) for one in (*operands, *results)]


OPEN = "[{?}, {?}]"


def test_both_ways() -> None:
    assert propagated(ADD, '[{"a"}, {?}]', OPEN, '[{?}, {"b"}]') == [
        '[{"a"}, {"b", ?}]',
        '[{"a", ?}, {"b", ?}]',
        '[{"a", ?}, {"b"}]',
    ]


def test_along_a_contracted_factor() -> None:
    assert propagated(MATMUL, '[{?}, {"a", ?}]', OPEN, OPEN) == ['[{?}, {"a", ?}]', '[{"a", ?}, {?}]', OPEN]


def test_one_way() -> None:
    forward = propagated(ADD, '[{"a", ?}, {?}]', OPEN, '[{?}, {"b", ?}]', direction=PropagationDirection.FORWARD)
    assert forward == ['[{"a", ?}, {?}]', '[{"a", ?}, {?}]', '[{"a", ?}, {"b", ?}]']
    backward = propagated(ADD, '[{"a", ?}, {?}]', OPEN, '[{?}, {"b", ?}]', direction=PropagationDirection.BACKWARD)
    assert backward == ['[{"a", ?}, {"b", ?}]', '[{?}, {"b", ?}]', '[{?}, {"b", ?}]']


def test_not_at_all() -> None:
    before = ['[{"a", ?}, {?}]', OPEN, OPEN]
    assert propagated(ADD, *before, direction=PropagationDirection.NONE) == before


def test_blocked_factors() -> None:
    rule = OpShardingRule(ADD.factor_sizes, ADD.operand_mappings, ADD.result_mappings, blocked_propagation_factors=(0,))
    assert propagated(rule, '[{"a", ?}, {"b", ?}]', OPEN, OPEN) == [
        '[{"a", ?}, {"b", ?}]',
        '[{?}, {"b", ?}]',
        '[{?}, {"b", ?}]',
    ]


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [
        # The common prefix, followed by the rest of the longer list.
        ('{"a", "b", ?}', '{"a", ?}', '{"a", "b", ?}'),
        ('{"a", "b", ?}', '{"a", "c", ?}', '{"a", ?}'),
        ('{"a", ?}', '{"b", ?}', "{?}"),
        ('{"b":(1)2, ?}', '{"b", ?}', '{"b", ?}'),
        ('{"b":(1)2, "a", ?}', '{"b", ?}', '{"b":(1)2, ?}'),
        ('{"b":(1)2, ?}', '{"b":(2)2, ?}', "{?}"),
    ],
)
def test_disagreement(one: str, other: str, result: str) -> None:
    assert propagated(ADD, f"[{one}, {{}}]", f"[{other}, {{}}]", OPEN)[2] == f"[{result}, {{?}}]"


def test_closed_and_used_axes_stop_an_axis() -> None:
    assert propagated(ADD, '[{"a", ?}, {?}]', "[{}, {?}]", OPEN)[2] == OPEN
    assert propagated(ADD, '[{"a", ?}, {?}]', '[{?}, {"a", ?}]', OPEN)[2] == OPEN
    replicated = propagated(ADD, '[{"a", ?}, {?}]', OPEN, '[{?}, {?}], replicated={"a"}')
    assert replicated[1] == OPEN


def test_a_part_of_an_axis_that_another_factor_leaves() -> None:
    assert propagated(ADD, '[{"b", ?}, {?}]', '[{?}, {"b":(2)2, ?}]', OPEN)[2] == '[{"b":(1)2, ?}, {?}]'
    conservative = propagated(ADD, '[{"b", ?}, {?}]', '[{?}, {"b":(2)2, ?}]', OPEN, conservative=True)
    assert conservative[2] == OPEN


def test_a_major_factor_takes_what_divides_it() -> None:
    assert propagated(RESHAPE, '[{"b", ?}]', OPEN) == ['[{"b", ?}]', '[{"b":(1)2, ?}, {"b":(2)2, ?}]']
    assert propagated(RESHAPE, "[{?}]", '[{"b", ?}, {?}]') == ['[{"b":(1)2, ?}]', '[{"b", ?}, {?}]']


def test_nothing_follows_a_part_of_an_axis() -> None:
    # Another factor of the second operand has the rest of "b", so axes after "b" would be strided.
    before = ['[{"b", "a", ?}, {?}]', '[{?}, {"b":(2)2, ?}]', OPEN]
    assert propagated(ADD, *before)[2] == '[{"b":(1)2, ?}, {?}]'
    # The major factor takes the part of "b" that divides its size, and "a" does not follow that part.
    rule = OpShardingRule((2, 8), (TensorMapping.of([0, 1]), TensorMapping.of([0], [1])), (TensorMapping.of([0], [1]),))
    after = propagated(rule, "[{?}]", '[{"b", "a", ?}, {?}]', OPEN)
    assert after[0] == '[{"b":(1)2, ?}]'


def test_what_a_part_of_an_axis_shards_is_taken_from_all_of_it() -> None:
    # The second operand is closed after a part of "b", which is the prefix that all tensors can have.
    before = ['[{"a", "b", ?}, {?}]', '[{"a", "b":(1)2}, {?}]', OPEN]
    assert propagated(ADD, *before) == [before[0], before[1], '[{"a", "b":(1)2, ?}, {?}]']


def test_axes_of_partial_sums_shard_nothing() -> None:
    assert propagated(ADD, '[{"a", ?}, {?}]', OPEN, '[{?}, {?}], unreduced={"a"}')[1:] == [
        OPEN,
        '[{?}, {?}], unreduced={"a"}',
    ]
