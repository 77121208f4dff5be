# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A cache of the sharding rules of a run: each rule is computed once, and a rule for any sizes once for all sizes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from mlir_shard import _native
from mlir_shard.asm.module import host_library
from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import ask, specific_name
from mlir_shard.rules.registry import (
    ROLE,
    Entry,
    RuleError,
    RuleOptions,
    asked_context,
    entry_of,
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


Rule = OpShardingRule | None


class CommonRules:
    """The signatures of ops and the rules that read no options, which caches with different options share."""

    def __init__(self) -> None:
        self.signatures = _native.OpSignatures(host_library(), [sdy.SHARDING])
        self.by_signature: dict[Hashable, Rule] = {}


class RuleCache:
    """A cache of the results of `rule_for` for ops of one context, by their signatures, for at most one run.

    Ops with equal names, types and attributes other than shardings have the same signature. Rules of this package are
    not checked against their ops, as the tests check them.

    Args:
        options: passed to the rules.
        common: shared with caches of other options.
    """

    def __init__(self, options: RuleOptions | None = None, common: CommonRules | None = None) -> None:
        self._options = options or RuleOptions()
        self._common = common or CommonRules()
        self._signatures = self._common.signatures
        self._rules: dict[Hashable, Rule] = {}
        self._entries: dict[str, Entry | None] = {}
        self._forms: dict[int, _RuleForm] = {}
        self._registrations = registrations()

    def rule_for(self, op: Any) -> Rule:
        """Returns the sharding rule of `op` or None. Raises RuleError as the function of the same name does."""
        op = op.operation
        name = specific_name(op)
        if self._registrations != registrations():
            self._rules.clear()
            self._common.by_signature.clear()
            self._forms.clear()
            self._entries.clear()
            self._registrations = registrations()
        if name not in self._entries:
            self._entries[name] = entry_of(op)
        entry = self._entries[name]
        key: Hashable = self._signatures.of(op._CAPIPtr)
        context_key = None if entry is None else entry.context_key_for(self._options)
        if context_key is not None:
            key = (key, asked_context(context_key, op))
        if key not in self._rules:
            if entry is not None and entry.is_own and sdy.SHARDING_RULE not in op.attributes:
                self._rules[key] = self._own_rule(op, entry, key)
            else:
                self._rules[key] = rule_for(op, self._options)
        return self._rules[key]

    def _own_rule(self, op: Any, entry: Entry, key: Hashable) -> Rule:
        common = self._common.by_signature
        if key in common:
            return common[key]
        found = self._signatures.of_any_sizes(op._CAPIPtr)
        if found is None:
            return None
        of_any_sizes, sizes = found
        if entry.any_sizes and not entry.has_context_key:
            form = self._forms.get(of_any_sizes)
            if form is None:
                form = self._forms[of_any_sizes] = _RuleForm(*self._asked(op, entry), sizes)
            rule = form.of_sizes(sizes)
            if rule is not None:
                if not form.reads_options:
                    common[key] = rule
                return rule
        rule, reads_options = self._asked(op, entry)
        if not reads_options:
            common[key] = rule
        return rule

    def _asked(self, op: Any, entry: Entry) -> tuple[Rule, bool]:
        """Returns the rule of an op by the registered function, and whether the function reads the options."""
        options = _ReadOptions(self._options)
        rule: Rule = ask(ROLE, entry.function, op, options, raises=RuleError)
        return rule, options.are_read


class _RuleForm:
    """A rule for any sizes, whose factors have the sizes of dimensions.

    Args:
        rule: the rule for the sizes in `sizes`.
        reads_options: whether the function of the rule reads the options.
        sizes: the sizes of the dimensions of all tensors.
    """

    def __init__(self, rule: Rule, reads_options: bool, sizes: Sequence[int]) -> None:
        self.reads_options = reads_options
        self._rule, self._sizes = rule, sizes

    def of_sizes(self, sizes: Sequence[int]) -> Rule:
        """Returns the rule for these sizes of all dimensions; None if its function has to be called for them."""
        if self._rule is None or sizes == self._sizes:
            return self._rule
        if self._places is None:
            return None
        return replace(self._rule, factor_sizes=tuple([sizes[place] for place in self._places]))

    @cached_property
    def _places(self) -> tuple[int, ...] | None:
        """For each factor, the number of a dimension made of only this factor; None if one has no such dimension."""
        assert self._rule is not None
        dims = [dim.factor_indices for mapping in self._rule.tensor_mappings for dim in mapping.dim_mappings]
        places = {factors[0]: place for place, factors in enumerate(dims) if len(factors) == 1}
        known = [places.get(factor, -1) for factor in range(self._rule.num_factors)]
        is_known = all(
            place >= 0 and self._sizes[place] == size
            for place, size in zip(known, self._rule.factor_sizes, strict=True)
        )
        return tuple(known) if is_known and len(dims) == len(self._sizes) else None
