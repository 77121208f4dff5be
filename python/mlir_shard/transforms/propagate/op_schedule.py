# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops propagate first: phases, each of which lets shardings through more ops than the one before.

The first phases are those of ops that somebody has put in an order, one for each group of them. The others are
Shardy's: ops that only pass a tensor on, first where none of their operands has another use; then all ops, but neither
forward through broadcasts nor along factors that cost communication; then along all factors; then everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from mlir_shard.rules.registry import Group, is_among
from mlir_shard.sharding import PropagationDirection
from mlir_shard.sharding.rule import FactorType
from mlir_shard.transforms.propagate.step import Phase
from mlir_shard.transforms.propagate.value_graph import NodeKind, OpClass

NONE, FORWARD, BACKWARD, BOTH = PropagationDirection


def _passing_on(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    match kind.op_class:
        case OpClass.ELEMENTWISE | OpClass.RESHAPING | OpClass.EDGE:
            return BOTH
        case OpClass.SLICING:
            return FORWARD
        case _:
            return NONE


def _passing_on_single_uses(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return NONE if kind.shared_operands else _passing_on(kind, factor_type)


def _without_communication(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return _all_but_broadcasts(kind, factor_type) if factor_type is FactorType.PASS_THROUGH else NONE


def _all_but_broadcasts(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return BACKWARD if kind.op_class is OpClass.BROADCAST else BOTH


def _all(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
    return BOTH


_SCHEDULE = (_passing_on_single_uses, _passing_on, _without_communication, _all_but_broadcasts, _all)


def _through(group: Group) -> Phase:
    def phase(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
        return BOTH if is_among(kind.op_name, group) else NONE

    return phase


def _up_to(phases: tuple[Phase, ...]) -> Phase:
    def phase(kind: NodeKind, factor_type: FactorType) -> PropagationDirection:
        return reduce(PropagationDirection.union, (one(kind, factor_type) for one in phases), NONE)

    return phase


def phases(first: Iterable[Group] = ()) -> tuple[Phase, ...]:
    """The phases in their order: `first` are the groups of ops, by name, that propagate before all others.

    Each phase goes wherever one before it goes.
    """
    one_by_one = (*map(_through, first), *_SCHEDULE)
    return tuple(_up_to(one_by_one[: number + 1]) for number in range(len(one_by_one)))
