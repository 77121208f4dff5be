# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which partition rule an op has: how it becomes the op that one device runs on its blocks.

Whoever partitions has brought the operands to the blocks that the op's factors ask for, in place; a partition rule
then makes the op itself local, which by default is no more than giving its results their local types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import OpShardingRule
from mlir_shard.sharding.rule import FactorType


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a partition rule is told about the blocks its op works on.

    `result_types` are the local types. `factor_axes` holds the grid axes each factor of `rule` is sharded along,
    major to minor. `device_index` gives, for grid axes major to minor, the position of this device among those
    along them as an `index` value in front of the op.
    """

    result_types: tuple[Any, ...]
    rule: OpShardingRule | None = None
    factor_axes: tuple[tuple[int, ...], ...] = ()
    device_index: Callable[[Sequence[int]], Any] = lambda axes: None

    @property
    def reduction_axes(self) -> tuple[int, ...]:
        """The grid axes along which the op leaves partial results."""
        if self.rule is None:
            return ()
        return tuple(axis for factor in self.rule.reduction_factors for axis in self.factor_axes[factor])


class PartitionError(Exception):
    """A partition rule that cannot make its op local; the message says what is missing."""


PartitionFunction = Callable[[Any, Blocks], "bool | None"]
UnshardableFactors = Callable[[Any, OpShardingRule], Collection[int]]


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """How an op becomes local.

    `localize` changes the op in place and returns False where it left its results whole, to be sliced by the
    caller. `unshardable` names factors along which this op cannot be partitioned, beside those that never can;
    `makes_elements` says that a factor only in results may be sharded, as every device can make its own part.
    """

    localize: PartitionFunction
    unshardable: UnshardableFactors | None = None
    makes_elements: bool = False

    def unshardable_factors(self, op: Any, rule: OpShardingRule) -> frozenset[int]:
        """The factors that have to be whole on every device for `localize` to be right."""
        found = set(rule.need_replication_factors) | set(rule.permutation_factors)
        if reduction_op(op) is None:
            found |= set(rule.reduction_factors)
        for factor in range(rule.num_factors):
            if rule.factor_type(factor) is FactorType.PASS_THROUGH and not self._connects(rule, factor):
                found.add(factor)
        if self.unshardable is not None:
            found |= set(self.unshardable(op, rule))
        return frozenset(found)

    def _connects(self, rule: OpShardingRule, factor: int) -> bool:
        in_results = any(mapping.contains_factor(factor) for mapping in rule.result_mappings)
        in_operands = any(mapping.contains_factor(factor) for mapping in rule.operand_mappings)
        return in_results and (in_operands or self.makes_elements)


_by_name: dict[str, PartitionRule] = {}
_by_predicate: list[tuple[Callable[[Any], bool], PartitionRule]] = []


def partition_rule(
    *names: str,
    when: Callable[[Any], bool] | None = None,
    unshardable: UnshardableFactors | None = None,
    makes_elements: bool = False,
) -> Callable[[PartitionFunction], PartitionFunction]:
    """Registers a function as the partition rule of the named ops, and of those that `when` holds for.

    Names come before predicates, predicates in the order of their registration. See `PartitionRule` for the rest.
    """

    def register(function: PartitionFunction) -> PartitionFunction:
        rule = PartitionRule(function, unshardable, makes_elements)
        for name in names:
            _by_name[name] = rule
        if when is not None:
            _by_predicate.append((when, rule))
        return function

    return register


def partition_rule_for(op: Any) -> PartitionRule | None:
    """The partition rule of `op`, or None."""
    op = op.operation
    found = _by_name.get(op.name)
    return found or next((rule for holds, rule in _by_predicate if holds(op)), None)


def set_result_types(op: Any, blocks: Blocks) -> None:
    """Makes an op local that has its shape in its types alone."""
    for result, type_ in zip(op.results, blocks.result_types, strict=True):
        result.set_type(type_)


def is_zero(value: Any) -> bool:
    """Whether every element of a tensor, or a scalar, is known to be zero: a constant, a splat or a fill of one."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name in ("linalg.fill", "tensor.splat"):
        return is_zero(op.operands[0])
    if op.name not in ("arith.constant", "stablehlo.constant"):
        return False
    constant = op.attributes["value"]
    if isinstance(constant, ir.DenseElementsAttr):
        if not constant.is_splat:
            return False
        constant = constant.get_splat_value()
    return isinstance(constant, ir.IntegerAttr | ir.FloatAttr) and constant.value == 0
