# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings of results between the op that makes them and their users, chosen for the least total cost.

Partial sums that are added are priced as parts of one sum, as `shard-sink-reductions` reduces them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from mlir_shard._native import ShardedOps
from mlir_shard.resharding.operator.cheapest_reshards import CheapestReshards, PricedReshards
from mlir_shard.resharding.operator.common_axes import mesh_of
from mlir_shard.resharding.operator.op_assignment import TOLERANCE
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.sharding_steps import Meshes, ReshardError
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.transforms.device_sets import have_different_devices
from mlir_shard.transforms.reshard.function_signatures import FunctionSignatures
from mlir_shard.transforms.reshard.op_choices import Signature, Treatment
from mlir_shard.transforms.reshard.sharded_function import UNSHARDED, OpRules, ShardedFunction

MOST_ALONE = 16
"""The most results of an op whose shardings are chosen one by one."""
Choose = Callable[[int, OpShardingRule], PricedReshards]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The distinct shardings that users of a value need, and the cost of the users without its reshards to these."""

    shardings: tuple[TensorSharding | None, ...]
    rest: float


class RestingShardings:
    """The shardings of results in a function, by number, which are changed.

    `rules` has the ops that may be resharded around, with their rules; `returned` are the shardings of the function's
    results. `choice` has the function that returns the reshards around an op for the present shardings of its operands
    and results, the ops by kind, which are resharded in the same way, and the function that records the form of an op
    around which nothing is resharded.
    """

    def __init__(
        self,
        function: ShardedFunction,
        signatures: FunctionSignatures,
        rules: OpRules,
        returned: Sequence[TensorSharding | None],
        choice: tuple[Choose, ShardedOps, Callable[[int], None]],
        prices: tuple[CheapestReshards, Meshes],
    ) -> None:
        self._function, self._arrays = function, function.arrays
        self._signatures = signatures
        self._rules = rules
        self._returned = returned
        self._choose, self._ops, self._keep = choice
        self._cheapest, self._meshes = prices

    def settle(self) -> list[int]:
        """Gives results their cheapest shardings; returns the ops with a result whose sharding changed."""
        uses = [self._use(op) for op in self._ops.representatives]
        returned = list(map(self._function.number, self._returned))
        ops, numbers = self._rules.ops[::-1], self._function.numbers
        return self._ops.settle(ops, numbers, uses, returned, self._where_resharded, self._settle_results)

    def _use(self, op: int) -> ShardedOps.Use:
        """Returns how an op counts among the users of a value."""
        treatment = self._signatures.of_form(self._arrays.signatures[op]).treatment
        if treatment is Treatment.RETURN:
            return ShardedOps.Use.RETURNS
        if treatment is Treatment.RESHARD:
            return ShardedOps.Use.RESHARDS
        is_weighed = treatment is Treatment.OTHER and self._rules.of_form(op) is not None
        return ShardedOps.Use.WEIGHED if is_weighed else ShardedOps.Use.IGNORED

    def _where_resharded(self, op: int) -> list[bool]:
        """Returns, for each operand and then each result, whether the op is resharded there; empty without reshards."""
        rule = self._rules[op]
        try:
            made = None if rule is None else self._choose(op, rule).reshards
        except ReshardError:
            # The pass reports the error when it processes the op.
            return []
        if made is None:
            self._keep(op)
            return []
        declared = map(self._function.sharding_of, self._arrays.results(op))
        results = [one is not None and one != old for one, old in zip(made.results, declared, strict=True)]
        return [*(one is not None for one in made.operands), *results]

    def _settle_results(self, op: int) -> None:
        if self._may_change(op):
            for values in self._settled_together(op):
                self._settle(op, values)

    def _settled_together(self, op: int) -> list[list[int]]:
        """Returns the results of an op in groups that get one sharding: each alone, or of many those that are alike."""
        results, rule = self._arrays.results(op), self._rules[op]
        if len(results) <= MOST_ALONE or rule is None:
            return [[value] for value in results]
        groups: defaultdict[Hashable, list[int]] = defaultdict(list)
        numbers = self._function.numbers
        for value, mapping in zip(results, rule.result_mappings, strict=True):
            try:
                wanted = self._wanted(value, numbers[value])
            except ReshardError:
                wanted = None
            groups[numbers[value], mapping, self._tensor(op, value), wanted].append(value)
        return list(groups.values())

    def _may_change(self, op: int) -> bool:
        results = self._arrays.results(op)
        # One attribute has the shardings of all results.
        return len(results) == 1 or all(self._function.numbers[value] != UNSHARDED for value in results)

    def _settle(self, op: int, values: Sequence[int]) -> None:
        """Gives results, which have one sharding, that with which they and their users are cheapest."""
        numbers = self._function.numbers
        declared = best = numbers[values[0]]
        try:
            wanted = self._wanted(values[0], declared)
            if wanted is None:
                return
            candidates = self._candidates(op, values[0], wanted)
            if not candidates:
                return
            least = self._cost(op, values, declared, wanted)
            for sharding in candidates if least is not None else ():
                number = self._function.number(sharding)
                self._give(values, number)
                # The costs of users are added to this cost, and are not negative.
                if not _is_less(self._cost_of_making(op), least):
                    continue
                cost = self._cost(op, values, declared)
                if _is_less(cost, least):
                    best, least = number, cost
        except ReshardError:
            # The pass reports the error when it processes the op.
            best = declared
        self._give(values, best)

    def _give(self, values: Sequence[int], number: int) -> None:
        for value in values:
            self._function.numbers[value] = number

    def _candidates(self, op: int, value: int, wanted: _Wanted) -> list[TensorSharding]:
        """Returns the shardings that users need and that the op makes, where these differ from that of the value."""
        declared = self._function.sharding_of(value)
        rule = self._rules[op]
        made = None if rule is None else self._choose(op, rule).reshards
        others = list(wanted.shardings)
        if made is not None:
            others.append(made.results[self._arrays.results(op).index(value)])
        found = [one for one in dict.fromkeys(others) if one is not None and not one.is_equivalent(declared)]
        meshes = (mesh_of(one, self._meshes) for one in (declared, *others) if one is not None)
        if found and have_different_devices(mesh for mesh in meshes if mesh is not None):
            return []
        return found

    def _cost(self, op: int, values: Sequence[int], declared: int, known: _Wanted | None = None) -> float | None:
        """Returns the cost of making the values, of their reshards for users and of the users; None if unknown.

        `known` is the result of `_wanted` for each of the values, if it is known.
        """
        cost = self._cost_of_making(op)
        for value in values:
            wanted = None if cost is None else known or self._wanted(value, declared)
            if cost is None or wanted is None:
                return None
            cost += wanted.rest
            sharding, tensor = self._function.sharding_of(value), self._tensor(op, value)
            for target in wanted.shardings:
                reshard = self._cheapest.between(sharding, target, tensor, self._meshes)
                if reshard is None:
                    return None
                cost += reshard
        return cost

    def _cost_of_making(self, op: int) -> float | None:
        """Returns the cost of an op with the reshards around it; None if it is not known."""
        rule = self._rules[op]
        return None if rule is None else self._choose(op, rule).cost

    def _wanted(self, value: int, declared: int) -> _Wanted | None:
        """Returns the shardings in which users need a value with its present sharding; None if a cost is not known.

        Users that are not resharded around get the value as `declared`.
        """
        shardings: list[TensorSharding | None] = []
        rest = 0.0
        uses = [(user, [index for _, index in of]) for user, of in groupby(self._arrays.uses(value), itemgetter(0))]
        users = [user for user, _ in uses]
        # Some values have many users, most of them of one equivalence class.
        firsts = users if len(users) == 1 else self._ops.alike(users, self._function.numbers)
        known: dict[int, PricedReshards] = {}
        for (user, places), first in zip(uses, firsts, strict=True):
            rule, treatment = self._rules.get(user), self._signature(user).treatment
            if treatment is Treatment.RETURN:
                shardings += [self._returned[index] for index in places]
            elif treatment is Treatment.RESHARD:
                shardings.append(self._function.sharding_of(self._arrays.results(user)[0]))
            elif treatment is not Treatment.OTHER or rule is None:
                shardings.append(self._function.shardings[declared])
            else:
                priced = known.get(first)
                if priced is None:
                    priced = known[first] = self._choose(user, rule)
                if priced.cost is None:
                    return None
                rest += priced.cost - sum([priced.resharding_operands[index] for index in places])
                own = self._function.sharding_of(value)
                shardings += [(priced.reshards and priced.reshards.operands[index]) or own for index in places]
        return _Wanted(_distinct(shardings), rest)

    def _signature(self, op: int) -> Signature:
        return self._signatures[self._arrays.signatures[op]]

    def _tensor(self, op: int, value: int) -> OpTensor:
        results = self._arrays.results(op)
        return self._signature(op).tensors[results.index(value) - len(results)]


def _is_less(cost: float | None, than: float | None) -> bool:
    """Returns whether both costs are known and the first is less by more than rounding."""
    return cost is not None and than is not None and cost < than * (1 - TOLERANCE)


def _distinct(shardings: Sequence[TensorSharding | None]) -> tuple[TensorSharding | None, ...]:
    result: list[TensorSharding | None] = []
    for one in dict.fromkeys(shardings):
        if not any(one == other if other is None else other.is_equivalent(one) for other in result):
            result.append(one)
    return tuple(result)
