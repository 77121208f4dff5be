# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The signatures of the ops of a function: those that differ only in sizes have one form, and are read when needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.rules import RuleOptions
from mlir_shard.rules.registry import depends_on_context, has_rule_for_any_sizes
from mlir_shard.sharding import OpShardingRule
from mlir_shard.transforms.device_sets import is_crossing
from mlir_shard.transforms.reshard.op_choices import Signature, Treatment, kind_of, size_of, tensor_of
from mlir_shard.transforms.reshard.sharded_function import ShardedFunction


class FunctionSignatures:
    """The signatures of the ops of a function, by number.

    Args:
        function: the function.
        rule_for: returns the sharding rule of an op.
        options: the options of the rules.
        may_reshard: returns whether insertions may be made around ops of a name for their rule.
        is_priced: whether the shapes of tensors are needed.
        asks_each: whether the rule of each op is computed for it alone.
    """

    def __init__(
        self,
        function: ShardedFunction,
        rule_for: Callable[[Any], OpShardingRule | None],
        options: RuleOptions,
        may_reshard: Callable[[str], bool],
        *,
        is_priced: bool,
        asks_each: bool,
    ) -> None:
        self._rule_for, self._options, self._may_reshard = rule_for, options, may_reshard
        self._is_priced, self._asks_each = is_priced, asks_each
        self._ops = function.representatives
        self._tensor_of, self._size_of = cache(tensor_of), cache(size_of)
        is_of_form = [is_priced and not asks_each and _has_form(op) for op in self._ops]
        self.forms: Sequence[int] = function.arrays.forms_of_any_sizes(is_of_form, (sdy.SHARDING,))
        """The form of each signature, -1 for those without a form."""
        self._counts = Counter(self.forms)
        self._known: dict[int, Signature] = {}
        first: dict[int, int] = {}
        self._firsts = [
            number if form < 0 else first.setdefault(form, number) for number, form in enumerate(self.forms)
        ]

    def __getitem__(self, number: int) -> Signature:
        """Returns a signature."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._read(self._ops[number])
        return found

    def shares_form(self, number: int) -> bool:
        """Returns whether another signature has the form of a signature."""
        return self.forms[number] >= 0 and self._counts[self.forms[number]] > 1

    def of_form(self, number: int) -> Signature:
        """Returns the first signature of the form of a signature, whose properties are the same except for sizes."""
        return self[self._firsts[number]]

    def first_of_each_form(self) -> list[Signature]:
        """Returns `of_form` of each signature, in order."""
        return list(map(self.__getitem__, self._firsts))

    def _read(self, op: Any) -> Signature:
        name = op.name
        # The operand of an exchange between meshes of different devices keeps its sharding.
        treatment = Treatment.OTHER if is_crossing(op) else Treatment.of(name)
        kind, has_regions = kind_of(name), len(op.regions) > 0
        # An op without insertions needs no other properties, except whether it has regions.
        if treatment is not Treatment.OTHER or not (has_regions or self._may_reshard(name)):
            return Signature(name, treatment, kind, has_regions=has_regions)
        asks_each = self._asks_each or depends_on_context(op, self._options)
        rule = None if asks_each else self._rule_for(op)
        types = [value.type for value in (*op.operands, *op.results)]
        tensors = tuple(map(self._tensor_of, types)) if self._is_priced else ()
        return Signature(name, treatment, kind, rule, asks_each, has_regions, tensors, tuple(map(self._size_of, types)))


def _has_form(op: Any) -> bool:
    """Returns whether the rule of an op is the same for other sizes, except for the sizes of its factors."""
    return not len(op.regions) and has_rule_for_any_sizes(op.name) and sdy.SHARDING_RULE not in op.attributes
