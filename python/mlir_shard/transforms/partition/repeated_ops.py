# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Isomorphic ops are planned once and rewritten natively as the first of them. Elementwise ops may differ in name, and
ops with even shards in sizes.

The state of each value in planning is a number; equal states have the same number.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from enum import Enum, auto
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.rules.partition import partition_rule_for
from mlir_shard.rules.registry import has_rule_for_any_sizes, is_ruled_from_outside
from mlir_shard.rules.uneven_shards import may_fail

Known = TypeVar("Known", bound=Hashable)


class NumberedValues(Generic[Known]):
    """A mapping from the values of a module, as it was read, to their states in planning.

    `states` has the number of the state of each value, or the negative number that the value has before it gets a
    state.
    """

    def __init__(self, arrays: ModuleArrays, states: array[int] | None = None) -> None:
        self.states = array("i", [-1]) * arrays.value_count if states is None else states
        self._arrays = arrays
        self._distinct: list[Known] = []
        self._numbers: dict[Known, int] = {}

    def __contains__(self, value: Any) -> bool:
        return self._state(value) >= 0

    def __getitem__(self, value: Any) -> Known:
        state = self._state(value)
        if state < 0:
            raise KeyError(value)
        return self._distinct[state]

    def __setitem__(self, value: Any, known: Known) -> None:
        number = self._arrays.number_of(value)
        if number is None:
            raise KeyError(value)
        self.states[number] = self._number(known)

    def get(self, value: Any) -> Known | None:
        """Returns the state of a value; None if it has none."""
        state = self._state(value)
        return None if state < 0 else self._distinct[state]

    def state(self, number: int) -> Known:
        """Returns the state of a number."""
        return self._distinct[number]

    def _state(self, value: Any) -> int:
        number = self._arrays.number_of(value)
        return -1 if number is None else self.states[number]

    def _number(self, known: Known) -> int:
        number = self._numbers.setdefault(known, len(self._distinct))
        if number == len(self._distinct):
            self._distinct.append(known)
        return number


def _ignored(op: Any) -> tuple[bool, bool, bool]:
    """Returns whether the plan of an op is independent of its name, of the constants that it uses, and of sizes.

    It may be independent only of sizes with even shards.
    """
    rule = partition_rule_for(op)
    if rule is None or not rule.pure or not rule.sets_types_alone or rule.unshardable:
        return False, False, False
    is_of_any_sizes = has_rule_for_any_sizes(op.name)
    if len(op.regions):
        return False, False, is_of_any_sizes
    is_any_elementwise = is_elementwise(op.name) and not is_ruled_from_outside(op) and not may_fail(op)
    return is_any_elementwise, is_any_elementwise or rule.makes_elements, is_of_any_sizes


class Reuse(Enum):
    """The ops to which the plan of an op applies: that one alone, isomorphic ones, or also those of other sizes."""

    NONE = auto()
    ISOMORPHIC = auto()
    ANY_SIZES = auto()


Plan = Callable[[Any], Reuse]
Shards = Callable[[Any], Sequence[int]]
ContextKey = Callable[[Any], Hashable]


class RepeatedOps:
    """The ops of a module, read at construction.

    `movers` are the names of ops for which it matters whether they are the only user of a value. Without `reuses`, each
    op is planned individually. With `by_name`, isomorphic ops have one name. An op for whose signature `keeps` returns
    True is not planned if no operand has a state.
    """

    def __init__(
        self,
        module: Any,
        movers: Sequence[str] = (),
        *,
        reuses: bool = True,
        by_name: bool = False,
        keeps: Callable[[Any], bool] | None = None,
    ) -> None:
        self._reuses = reuses
        self.arrays = ModuleArrays(module)
        self.representatives = self.arrays.representatives()
        names = {op.name: op for op in self.representatives}
        ignored = {name: (False, False, False) if by_name else _ignored(op) for name, op in names.items()}
        kept = () if keeps is None else list(map(keeps, self.representatives))
        self._rewrites = self.arrays.repeated_rewrites([ignored[op.name] for op in self.representatives], kept)
        self._context_keys: dict[Hashable, int] = {}
        self._definers = self.arrays.definers
        # The ops that are to be changed at their place in the order, by number; each occurs once.
        self._deferred: list[tuple[int, Callable[[Any], None]]] = []
        self._uses = self.arrays.use_states([op.name in movers for op in self.representatives])

    def values(self) -> NumberedValues[Known]:
        """Returns the states of the values for `plan`, initially numbers for the uses of each value."""
        return NumberedValues(self.arrays, self._uses[:])

    def plan(
        self,
        block: Any,
        values: NumberedValues[Any],
        plan: Plan,
        context_key: ContextKey,
        shards: Shards,
        context: int = 0,
    ) -> Any:
        """Plans the ops of a block except the last one, which is returned; returns None for an empty block.

        `plan(op)` plans an op, sets the states of its results, and returns which ops are changed in the same way. The
        first of these has a plan for all, to be passed to `carry_out`, and the others have none. A plan for any sizes
        only gives results local types; `localize` does so for all but the first op. Isomorphic ops have equal
        `context_key(op)`, which is None if no op of the signature has one. `shards(state)` returns the number of shards
        of each dimension of a value in a state.
        """

        def states(number: int) -> tuple[list[int], bool] | None:
            reuse = plan(self.arrays.operation(number))
            if reuse is Reuse.NONE or not self._reuses:
                return None
            return [values.states[value] for value in self.arrays.results(number)], reuse is Reuse.ANY_SIZES

        def key_of(number: int) -> int | None:
            found = context_key(self.arrays.operation(number)) if self._reuses else None
            return None if found is None else self._context_keys.setdefault(found, len(self._context_keys))

        first = next(iter(block.operations), None)
        if first is None:
            return None
        last = self._rewrites.visit(
            first.operation._CAPIPtr, context, values.states, states, key_of, lambda state: shards(values.state(state))
        )
        return ir.Operation._CAPICreate(last)

    def localize(self, values: NumberedValues[Any]) -> None:
        """Gives the results of ops that share the plan of an op of other sizes their local types."""
        self._rewrites.localize(values.states)

    def carry_out(self, op: Any, change: Callable[[Any], None]) -> None:
        """Changes an op, and those isomorphic to it; `finish` has to be called after the last one.

        An isomorphic op that cannot be rewritten natively is changed at its place in the order of the given ops,
        because its operands have local types only then.
        """
        self._change_deferred(self._number(op))
        for number in self._rewrites.rewrite(op._CAPIPtr, lambda: change(op)):
            heappush(self._deferred, (number, change))

    def finish(self) -> None:
        """Changes the isomorphic ops that are left."""
        self._change_deferred(len(self.arrays))

    def _number(self, op: Any) -> int:
        """Returns the number of an op; for one without results, the lowest that its operands allow."""
        if len(op.results):
            value = self.arrays.number_of(op.results[0])
            return -1 if value is None else self._definers[value]
        known = (self.arrays.number_of(value) for value in op.operands)
        return 1 + max((self._definers[value] for value in known if value is not None), default=-1)

    def _change_deferred(self, end: int) -> None:
        while self._deferred and self._deferred[0][0] < end:
            number, change = heappop(self._deferred)
            change(self.arrays.operation(number))
