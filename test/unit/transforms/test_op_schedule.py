# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the phases in which ops propagate."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from mlir_shard.sharding import OpShardingRule, PropagationDirection, TensorMapping
from mlir_shard.sharding.rule import FactorType
from mlir_shard.transforms.propagate.phases import phases
from mlir_shard.transforms.propagate.value_graph import NodeKind, OpClass

NONE, FORWARD, BACKWARD, BOTH = PropagationDirection
PHASES = phases()
# ([i, j])->([i]) with reduction factor j
RULE = OpShardingRule((8, 8), (TensorMapping.of([0], [1]),), (TensorMapping.of([0]),), reduction_factors=(1,))


@pytest.mark.parametrize(
    ("op_class", "shared", "pass_through", "reduction"),
    [
        (OpClass.ELEMENTWISE, False, [BOTH] * 5, [BOTH] * 5),
        (OpClass.ELEMENTWISE, True, [NONE, BOTH, BOTH, BOTH, BOTH], [NONE, BOTH, BOTH, BOTH, BOTH]),
        (OpClass.EDGE, False, [BOTH] * 5, [BOTH] * 5),
        (OpClass.SLICING, False, [FORWARD, FORWARD, BOTH, BOTH, BOTH], [FORWARD, FORWARD, FORWARD, BOTH, BOTH]),
        (OpClass.BROADCAST, False, [NONE, NONE, BACKWARD, BACKWARD, BOTH], [NONE, NONE, NONE, BACKWARD, BOTH]),
        (OpClass.OTHER, False, [NONE, NONE, BOTH, BOTH, BOTH], [NONE, NONE, NONE, BOTH, BOTH]),
    ],
)
def test_each_class_of_ops_has_its_turn(
    op_class: OpClass,
    shared: bool,
    pass_through: list[PropagationDirection],
    reduction: list[PropagationDirection],
) -> None:
    kind = NodeKind(RULE, op_class, shared_operands=shared)
    assert [phase(kind, FactorType.PASS_THROUGH) for phase in PHASES] == pass_through
    assert [phase(kind, FactorType.REDUCTION) for phase in PHASES] == reduction


def test_no_phase_takes_back_what_one_before_allowed() -> None:
    for op_class, shared, factor in product(OpClass, (False, True), FactorType):
        kind = NodeKind(RULE, op_class, shared_operands=shared)
        for before, after in pairwise(phase(kind, factor) for phase in PHASES):
            assert before.union(after) == after


def test_listed_ops_come_first_in_their_order() -> None:
    listed = phases([("test.a",), ("test.b", "other.*")])
    assert len(listed) == len(PHASES) + 2
    kinds = [NodeKind(RULE, op_name=name) for name in ("test.a", "test.b", "other.c", "test.d")]
    assert [[phase(kind, FactorType.REDUCTION) for phase in listed[:3]] for kind in kinds] == [
        [BOTH, BOTH, BOTH],
        [NONE, BOTH, BOTH],
        [NONE, BOTH, BOTH],
        [NONE, NONE, NONE],
    ]
    assert all(phase(kind, FactorType.REDUCTION) is BOTH for kind in kinds for phase in listed[-1:])
