# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshards that several ops or iterations share: each has its part of the cost.

Partial sums that are added are reduced as one sum by `shard-sink-reductions` and `shard-sink-accumulations`. A reshard
of an operand that is the same in all iterations of a loop is moved before the loop by `shard-hoist-collectives`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.ir.editing import ADDITIONS
from mlir_shard.sharding import OpShardingRule, ReductionOp
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.accumulations import LOOP, accumulations, iterations, makers, shared_values
from mlir_shard.transforms.reshard.op_choices import Signature
from mlir_shard.transforms.reshard.sharded_function import OpRules, ShardedFunction

Combiner = Callable[[int, OpShardingRule], ReductionOp | None]


@dataclass(frozen=True, slots=True)
class SharedReshards:
    """The numbers of ops or iterations that share the reshards around the ops of a function.

    Attributes:
        summands: for each op whose result is one of several partial sums that are added, the number of these.
        iterations: for each op with operands that are the same in iterations of a loop, the number of iterations for
            each operand.
    """

    summands: Mapping[int, int] = field(default_factory=dict)
    iterations: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @staticmethod
    def read(
        function: ShardedFunction, signatures: Sequence[Signature], rules: OpRules, combiner: Combiner
    ) -> SharedReshards:
        """Reads the numbers of all ops of a function."""
        numbers = function.arrays.with_signatures([signature.name == LOOP for signature in signatures])
        loops = list(map(function.arrays.operation, numbers))
        return SharedReshards(
            _summands(function, signatures, rules, loops, combiner), _iterations(function, rules, loops)
        )

    def __bool__(self) -> bool:
        return bool(self.summands or self.iterations)

    def __iter__(self) -> Iterator[int]:
        return iter(self.summands.keys() | self.iterations.keys())

    def of(self, op: int) -> tuple[int, tuple[int, ...]]:
        """Returns the number of summands of an op, and the iterations of each operand, none if no operand is shared."""
        return self.summands.get(op, 1), self.iterations.get(op, ())


def _iterations(function: ShardedFunction, rules: OpRules, loops: Iterable[Any]) -> dict[int, tuple[int, ...]]:
    """Returns, for each op with operands that are the same in iterations of a loop, the iterations of each operand."""
    arrays, known = function.arrays, frozenset(rules)
    counts = {arrays.number_of(value): count for value, count in shared_values(loops).items()}
    users = {user for value in counts if value is not None for user, _ in arrays.uses(value)}
    return {op: tuple(counts.get(value, 1) for value in arrays.operands(op)) for op in sorted(users & known)}


def _summands(
    function: ShardedFunction,
    signatures: Sequence[Signature],
    rules: OpRules,
    loops: Iterable[Any],
    combiner: Combiner,
) -> dict[int, int]:
    """Returns, for each op whose result is one of several partial sums that are added, the number of these.

    The sums are partial along the same axes, and have no other uses than additions up to the total. A loop that
    accumulates partial sums adds those of all iterations.
    """
    arrays = function.arrays
    adds = [signature.name in ADDITIONS for signature in signatures]
    reducing = rules.where(lambda rule: rule.reduction_factors)
    known: dict[tuple[int, int], frozenset[AxisRef]] = {}
    found: defaultdict[tuple[int, frozenset[AxisRef]], list[int]] = defaultdict(list)
    firsts, roots = arrays.alike(reducing, function.numbers), arrays.last_following(reducing, adds)
    for op, first, root in zip(reducing, firsts, roots, strict=True):
        rule = rules.of_form(op)
        if root == op or rule is None or combiner(op, rule) is not ReductionOp.SUM:
            continue
        axes = known.get((first, id(rule)))
        if axes is None:
            axes = known[first, id(rule)] = _reduced_axes(function, op, rule)
        if axes:
            found[root, axes].append(op)
    counts = {op: len(ops) for ops in found.values() if len(ops) > 1 for op in ops}
    for op, repeated in _accumulated(function, loops, rules, combiner):
        counts[op] = counts.get(op, 1) * repeated
    return counts


def _accumulated(
    function: ShardedFunction, loops: Iterable[Any], rules: OpRules, combiner: Combiner
) -> Iterator[tuple[int, int]]:
    """Yields the ops that make partial sums that a loop accumulates, with the number of iterations.

    The accumulated value is not sharded along the axes, so `shard-sink-accumulations` reduces it after the loop.
    """
    arrays, known = function.arrays, frozenset(rules)
    for loop in loops:
        count = iterations(loop) or 1
        for one in accumulations(loop) if count > 1 else ():
            of_sum = sharding_of(loop.results[one.number])
            taken = () if of_sum is None else [axis for dim in of_sum.dim_shardings for axis in dim.axes]
            for maker in chain.from_iterable(map(makers, one.summands)):
                number = arrays.number_of(maker.results[0])
                op = -1 if number is None else arrays.definers[number]
                rule = rules.of_form(op) if op in known else None
                if rule is None or not rule.reduction_factors or combiner(op, rule) is not ReductionOp.SUM:
                    continue
                axes = _reduced_axes(function, op, rule)
                if axes and not any(axis.overlaps(other) for axis in axes for other in taken):
                    yield op, count


def _reduced_axes(function: ShardedFunction, op: int, rule: OpShardingRule) -> frozenset[AxisRef]:
    """Returns the axes along which operands are sharded in dimensions that the op reduces."""
    found: set[AxisRef] = set()
    for value, mapping in zip(function.arrays.operands(op), rule.operand_mappings, strict=True):
        sharding = function.sharding_of(value)
        if sharding is None:
            continue
        for dim, of_dim in zip(mapping.dim_mappings, sharding.dim_shardings, strict=True):
            if any(factor in rule.reduction_factors for factor in dim.factor_indices):
                found.update(of_dim.axes)
    return frozenset(found)
