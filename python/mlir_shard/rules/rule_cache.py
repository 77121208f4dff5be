# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rules of a run: each is asked for once, and rules for any sizes once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import ask, specific_name
from mlir_shard.host import ir
from mlir_shard.rules.registry import (
    ROLE,
    Entry,
    OpSignature,
    RuleError,
    RuleOptions,
    asked_context,
    entry_of,
    has_static_shape,
    op_signature,
    registrations,
    rule_for,
)
from mlir_shard.sharding import OpShardingRule


class _ReadOptions:
    """Options that record whether a rule reads them."""

    def __init__(self, options: RuleOptions) -> None:
        self._options = options
        self.are_read = False

    def __getattr__(self, name: str) -> Any:
        self.are_read = True
        return getattr(self._options, name)


class RuleCache:
    """`rule_for`, asked once per distinct op. Holds types and attributes, so it lives no longer than a run.

    That the rules of this package fit their ops is for its tests to check, and not done again here. Rules that
    do not read the options are in `common`, which caches with other options may share.
    """

    def __init__(
        self, options: RuleOptions | None = None, common: dict[Hashable, OpShardingRule | None] | None = None
    ) -> None:
        self._options = options or RuleOptions()
        self._common = {} if common is None else common
        self._rules: dict[Hashable, OpShardingRule | None] = {}
        self._entries: dict[str, Entry | None] = {}
        self._static: dict[Any, bool] = {}
        self._forms: dict[Hashable, _RuleForm] = {}
        self._kinds: dict[Any, tuple[Hashable, tuple[int, ...]]] = {}
        self._registrations = registrations()

    def rule_for(self, op: Any) -> OpShardingRule | None:
        """The sharding rule of `op` or None; raises RuleError as the function of the same name does."""
        op = op.operation
        name = specific_name(op)
        if self._registrations != registrations():
            self._rules.clear()
            self._common.clear()
            self._forms.clear()
            self._entries.clear()
            self._registrations = registrations()
        if name not in self._entries:
            self._entries[name] = entry_of(op)
        entry = self._entries[name]
        signature = op_signature(op)
        key: Hashable = signature
        if entry is not None and entry.context_key is not None:
            key = (key, asked_context(entry.context_key, op))
        if key not in self._rules:
            if entry is not None and entry.is_own and sdy.SHARDING_RULE not in op.attributes:
                self._rules[key] = self._own_rule(op, entry, key, signature)
            else:
                self._rules[key] = rule_for(op, self._options)
        return self._rules[key]

    def _own_rule(self, op: Any, entry: Entry, key: Hashable, signature: OpSignature) -> OpShardingRule | None:
        if key in self._common:
            return self._common[key]
        _, operands, results, _ = signature
        for type_ in (*operands, *results):
            if type_ not in self._static:
                self._static[type_] = has_static_shape(type_)
            if not self._static[type_]:
                return None
        if entry.any_sizes and entry.context_key is None:
            of_any_sizes, sizes = self._without_sizes(signature)
            form = self._forms.get(of_any_sizes)
            if form is None:
                form = self._forms[of_any_sizes] = _RuleForm.of(*self._asked(op, entry), sizes)
            rule = form.of_sizes(sizes)
            if rule is not None:
                if not form.reads_options:
                    self._common[key] = rule
                return rule
        rule, reads_options = self._asked(op, entry)
        if not reads_options:
            self._common[key] = rule
        return rule

    def _asked(self, op: Any, entry: Entry) -> tuple[OpShardingRule | None, bool]:
        """The rule of an op by the function that is registered, and whether that reads the options."""
        options = _ReadOptions(self._options)
        rule: OpShardingRule | None = ask(ROLE, entry.function, op, options, raises=RuleError)
        return rule, options.are_read

    def _without_sizes(self, signature: OpSignature) -> tuple[Hashable, tuple[int, ...]]:
        """Returns the key of a rule for any sizes, and the sizes of all dimensions in order."""
        name, operands, results, attributes = signature
        key: list[Hashable] = [name, attributes, len(operands)]
        sizes: tuple[int, ...] = ()
        for type_ in (*operands, *results):
            if type_ not in self._kinds:
                self._kinds[type_] = _kind_and_shape(type_)
            kind, shape = self._kinds[type_]
            key.append(kind)
            sizes += shape
        numbers = {1: 0}
        key += [numbers.setdefault(size, len(numbers)) for size in sizes]
        return tuple(key), sizes


def _kind_and_shape(type_: Any) -> tuple[Hashable, tuple[int, ...]]:
    """Returns a type without the sizes of its dimensions, and the sizes."""
    if not isinstance(type_, ir.RankedTensorType):
        return type_, ()
    return (type_.element_type, type_.encoding, type_.rank), tuple(type_.shape)


@dataclass(frozen=True, slots=True)
class _RuleForm:
    """A rule for any sizes, and where it has the sizes of its factors from; None where that is not known of each.

    Args:
        rule: for some sizes.
        places: for each factor a dimension that it is, by its number among those of all tensors.
        reads_options: whether the function of the rule reads the options.
    """

    rule: OpShardingRule | None
    places: tuple[int, ...] | None
    reads_options: bool

    @staticmethod
    def of(rule: OpShardingRule | None, reads_options: bool, sizes: Sequence[int]) -> _RuleForm:
        """The form of a rule for these sizes of all dimensions."""
        if rule is None:
            return _RuleForm(None, None, reads_options)
        dims = [dim.factor_indices for mapping in rule.tensor_mappings for dim in mapping.dim_mappings]
        places = {factors[0]: place for place, factors in enumerate(dims) if len(factors) == 1}
        known = [places.get(factor, -1) for factor in range(rule.num_factors)]
        is_known = all(
            place >= 0 and sizes[place] == size for place, size in zip(known, rule.factor_sizes, strict=True)
        )
        return _RuleForm(rule, tuple(known) if is_known and len(dims) == len(sizes) else None, reads_options)

    def of_sizes(self, sizes: Sequence[int]) -> OpShardingRule | None:
        """The rule for these sizes of all dimensions; None where it has to be asked for."""
        if self.rule is None or self.places is None:
            return None
        of_factors = tuple([sizes[place] for place in self.places])
        return self.rule if of_factors == self.rule.factor_sizes else replace(self.rule, factor_sizes=of_factors)
