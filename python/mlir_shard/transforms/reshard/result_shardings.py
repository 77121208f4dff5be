# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings of results between the op that makes them and their users, at the least cost for all of these.

Partial sums that are added are priced as parts of one sum, as `shard-sink-reductions` reduces them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from mlir_shard.ir.editing import ADDITIONS
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.operator.op_assignment import TOLERANCE
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.sharding_steps import Meshes, ReshardError
from mlir_shard.sharding import OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.transforms.device_sets import have_different_devices
from mlir_shard.transforms.reshard.op_choices import UNSHARDED, ShardedFunction, Signature, Way

Combiner = Callable[[int, Signature, OpShardingRule], ReductionOp | None]


def summands(
    function: ShardedFunction,
    signatures: Sequence[Signature],
    rules: Mapping[int, OpShardingRule | None],
    combiner: Combiner,
) -> dict[int, int]:
    """Returns, for each op whose result is one of several partial sums that are added, the number of these.

    They are partial along the same axes, and only additions use them, up to the sum of all.
    """
    arrays = function.arrays
    adds = [signature.name in ADDITIONS for signature in signatures]
    found: defaultdict[tuple[int, frozenset[AxisRef]], list[int]] = defaultdict(list)
    for op, rule in rules.items():
        if rule is None or not rule.reduction_factors or len(arrays.results(op)) != 1:
            continue
        axes = _reduced_axes(function, op, rule)
        root = _sum(function, op, adds) if axes else op
        if root != op and combiner(op, signatures[arrays.signatures[op]], rule) is ReductionOp.SUM:
            found[root, axes].append(op)
    return {op: len(ops) for ops in found.values() if len(ops) > 1 for op in ops}


def _sum(function: ShardedFunction, op: int, adds: Sequence[bool]) -> int:
    """Returns the last of the additions that follow an op, each of which alone uses the result of the one before."""
    arrays = function.arrays
    while True:
        (result,) = arrays.results(op)
        users = arrays.users(result)
        if len(users) != 1 or not adds[arrays.signatures[users[0]]] or arrays.parents[users[0]] != arrays.parents[op]:
            return op
        if list(arrays.operands(users[0])).count(result) != 1:
            return op
        op = users[0]


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


Choose = Callable[[int, OpShardingRule], PricedReshards]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The shardings that users of a value want, each once, and what these cost but for bringing it there."""

    shardings: tuple[TensorSharding | None, ...]
    rest: float


class RestingShardings:
    """Changes the shardings of results in a function, by number.

    `rules` has the ops that may be resharded around, with their rules; `returned` are the shardings of the function's
    results. `choice` has what gives what is put around an op as its operands and results lie now, what gives the
    reduction of its partial results, and the numbers of summands of ops that have several.
    """

    def __init__(
        self,
        function: ShardedFunction,
        signatures: Sequence[Signature],
        rules: Mapping[int, OpShardingRule | None],
        returned: Sequence[TensorSharding | None],
        choice: tuple[Choose, Combiner, Mapping[int, int]],
        prices: tuple[CheapestReshards, Meshes],
        *,
        reuses: bool = True,
    ) -> None:
        self._function, self._arrays = function, function.arrays
        self._signatures = signatures
        self._rules = rules
        self._returned = returned
        self._choose, self._combiner, self._summands = choice
        self._cheapest, self._meshes = prices
        self._reuses = reuses

    def settle(self) -> list[int]:
        """Lets results lie as is cheapest; the ops of which one lies otherwise now."""
        arrays = self._arrays
        firsts = arrays.alike_among_users(self._classes()) if self._reuses else range(len(arrays))
        # By the first of those that are alike, and are used alike, whether their results stay; but for those around
        # which something lies otherwise by now.
        stays: set[int] = set()
        touched: set[int] = set()
        found = []
        for op in reversed(list(self._rules)):
            if (firsts[op] in stays and op not in touched) or not self._may_change(op):
                continue
            changed = [value for value in arrays.results(op) if self._settle(op, value)]
            if changed:
                found.append(op)
                touched |= self._around(op, changed)
            elif op not in touched:
                stays.add(firsts[op])
        return found

    def _classes(self) -> list[int]:
        """For each op the number of its equivalence class: ops of a class have one price."""
        function, arrays, signatures = self._function, self._arrays, self._signatures
        classes = arrays.alike(range(len(arrays)), function.numbers)
        # A signature has neither what is in regions nor what is around an op.
        says_all = [not (one.asks_each or one.has_regions) for one in signatures]
        count = len(classes)
        others: dict[Hashable, int] = {}
        for op, (number, signature) in enumerate(zip(classes, arrays.signatures, strict=True)):
            rule = self._rules.get(op)
            if rule is None:
                # Whether it is among those that may be resharded around counts too.
                classes[op] = number + count * (1 + (op in self._rules))
            elif not says_all[signature]:
                key = number, id(rule), self._combiner(op, signatures[signature], rule)
                classes[op] = others.setdefault(key, 3 * count + len(others))
            if op in self._summands:
                pair = classes[op], self._summands[op]
                classes[op] = others.setdefault(pair, 3 * count + len(others))
        return classes

    def _around(self, op: int, changed: Sequence[int]) -> set[int]:
        """The ops that see an op, or one that uses a changed result of it, or are one of these."""
        arrays = self._arrays
        ops = {op, *(user for value in changed for user in arrays.users(value))}
        return ops | {arrays.definers[value] for one in ops for value in arrays.operands(one)}

    def _may_change(self, op: int) -> bool:
        if self._rules[op] is None or self._signature(op).way is not Way.OTHER:
            return False
        results = self._arrays.results(op)
        # The shardings of several results are said together.
        return len(results) == 1 or all(self._function.numbers[value] != UNSHARDED for value in results)

    def _settle(self, op: int, value: int) -> bool:
        """Gives a result its cheapest sharding; returns whether that is another one than before."""
        numbers = self._function.numbers
        declared = numbers[value]
        try:
            wanted = self._wanted(value, declared)
            if wanted is None:
                return False
            candidates = self._candidates(op, value, wanted)
            if not candidates:
                return False
            best, least = declared, self._cost(op, value, wanted)
            for sharding in candidates:
                numbers[value] = self._function.number(sharding)
                now = self._wanted(value, declared)
                cost = None if now is None else self._cost(op, value, now)
                if least is not None and cost is not None and cost < least * (1 - TOLERANCE):
                    best, least = numbers[value], cost
        except ReshardError:
            # It is said when the op has its turn.
            best = declared
        numbers[value] = best
        return best != declared

    def _candidates(self, op: int, value: int, wanted: _Wanted) -> list[TensorSharding]:
        """What users want, and how the op makes it, where that is otherwise than the value lies."""
        declared = self._function.sharding_of(value)
        rule = self._rules[op]
        made = None if rule is None else self._choose(op, rule).reshards
        others = list(wanted.shardings)
        if made is not None:
            others.append(made.results[self._arrays.results(op).index(value)])
        meshes = (mesh_of(one, self._meshes) for one in (declared, *others) if one is not None)
        if have_different_devices(mesh for mesh in meshes if mesh is not None):
            return []
        return [one for one in dict.fromkeys(others) if one is not None and not one.is_equivalent(declared)]

    def _cost(self, op: int, value: int, wanted: _Wanted) -> float | None:
        """What making the value costs, bringing it to each sharding that users want, and what they do with it."""
        rule = self._rules[op]
        cost = None if rule is None else self._choose(op, rule).cost
        if cost is None:
            return None
        cost += wanted.rest
        sharding, tensor = self._function.sharding_of(value), self._tensor(op, value)
        for target in wanted.shardings:
            reshard = self._cheapest.between(sharding, target, tensor, self._meshes)
            if reshard is None:
                return None
            cost += reshard
        return cost

    def _wanted(self, value: int, declared: int) -> _Wanted | None:
        """What users want of a value as it lies now; None where that is not weighed.

        Users that are not resharded around get it as it was `declared`.
        """
        shardings: list[TensorSharding | None] = []
        rest = 0.0
        for user in self._arrays.users(value):
            places = [index for index, operand in enumerate(self._arrays.operands(user)) if operand == value]
            rule, way = self._rules.get(user), self._signature(user).way
            if way is Way.RETURN:
                shardings += [self._returned[index] for index in places]
            elif way is Way.RESHARD:
                shardings.append(self._function.sharding_of(self._arrays.results(user)[0]))
            elif way is not Way.OTHER or rule is None:
                shardings.append(self._function.shardings[declared])
            else:
                priced = self._choose(user, rule)
                if priced.cost is None:
                    return None
                rest += priced.cost - sum(priced.resharding_operands[index] for index in places)
                own = self._function.sharding_of(value)
                shardings += [(priced.reshards and priced.reshards.operands[index]) or own for index in places]
        return _Wanted(_distinct(shardings), rest)

    def _signature(self, op: int) -> Signature:
        return self._signatures[self._arrays.signatures[op]]

    def _tensor(self, op: int, value: int) -> OpTensor:
        results = self._arrays.results(op)
        return self._signature(op).tensors[results.index(value) - len(results)]


def _distinct(shardings: Sequence[TensorSharding | None]) -> tuple[TensorSharding | None, ...]:
    result: list[TensorSharding | None] = []
    for one in shardings:
        if not any(one == other if other is None else other.is_equivalent(one) for other in result):
            result.append(one)
    return tuple(result)
