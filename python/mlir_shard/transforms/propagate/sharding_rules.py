# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that show sharding rules: attach each op's rule, or report the ops at which propagation stops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.diagnostic import remark
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import FunctionPass, ModulePass, PassFailure, register
from mlir_shard.rules import RuleCache, RuleError, RuleOptions, reason_without_rule
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.registry import depends_on_context, has_rule, has_static_shapes
from mlir_shard.sharding import OpShardingRule
from mlir_shard.transforms.shardings import rule_cache


@register
class PopulateOpShardingRules(FunctionPass):
    """Attaches to each op the sharding rule that propagation would use for it.

    An op with an operand or result that is not a tensor gets no rule, as the attribute cannot express its mapping.
    """

    name = "sdy-populate-op-sharding-rules"
    summary = "Populates all registered ops with an OpShardingRuleAttr"

    conservative_propagation: bool = option(False, "omit factors whose sharding requires communication")

    def run(self, op: Any) -> None:
        rules = rule_cache(RuleOptions(conservative=self.conservative_propagation))

        try:
            for inner in ops_below(op):
                rule = rules.rule_for(inner)
                if rule is not None and is_describable(inner):
                    inner.attributes[sdy.SHARDING_RULE] = sdy.attribute(rule)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error


def is_describable(op: Any) -> bool:
    """Returns whether a rule of an op can be attached to it: all its operands and results have a shape."""
    return all(isinstance(value.type, ir.ShapedType) for value in (*op.operands, *op.results))


# Dialects of calls, returns and the ops of sdy, through which propagation goes in special ways.
_KNOWN_DIALECTS = ("func", "sdy")


@dataclass(slots=True)
class _Unknown:
    first: Any
    count: int = 0


@register
class ReportUnknownOps(ModulePass):
    """Emits a remark for each name and reason of ops without a sharding rule, at the first of them, with their number.

    Such ops block propagation: no sharding passes from their operands to their results.

    Ops without two tensors to relate are not reported, nor are those that data-flow edges bypass: ops with edges,
    calls, terminators, and ops in the regions of ops with a rule.
    """

    name = "sdy-report-unknown-ops"
    summary = "Reports ops without a sharding rule, which block propagation"

    def run(self, op: Any) -> bool:
        found: dict[tuple[str, str], _Unknown] = {}
        for unknown, reason in _unknown_ops(ModuleArrays(op), rule_cache()):
            found.setdefault((unknown.name, reason), _Unknown(unknown)).count += 1
        for (name, reason), unknown in found.items():
            ops = "1 op" if unknown.count == 1 else f"{unknown.count} ops, the first one here"
            remark(f"'{name}' has no sharding rule: {reason} ({ops})", unknown.first)
        return False


def _unknown_ops(arrays: ModuleArrays, rules: RuleCache) -> Iterator[tuple[Any, str]]:
    """Yields the ops that block propagation, in the order of the text, with the reason of each."""
    kinds = [_Kind.of(op, rules) for op in arrays.representatives()]
    has_own_rule = [False] * len(arrays)
    for number, signature in enumerate(arrays.signatures):
        parent, kind = arrays.parents[number], kinds[signature]
        if parent >= 0 and has_own_rule[parent]:
            has_own_rule[number] = True
        elif kind.relates_tensors:
            op = arrays.operation(number) if kind.asks_each or kind.rule is None else None
            rule = rules.rule_for(op) if kind.asks_each else kind.rule
            if rule is None:
                yield op, _reason(op)
            has_own_rule[number] = rule is not None


@dataclass(frozen=True, slots=True)
class _Kind:
    """The properties that ops of one signature share; `asks_each` is for rules that depend on more than that."""

    relates_tensors: bool
    asks_each: bool = False
    rule: OpShardingRule | None = None

    @staticmethod
    def of(op: Any, rules: RuleCache) -> _Kind:
        if not _relates_tensors(op):
            return _Kind(False)
        return _Kind(True, True) if depends_on_context(op) else _Kind(True, False, rules.rule_for(op))


def _relates_tensors(op: Any) -> bool:
    if op.name.partition(".")[0] in _KNOWN_DIALECTS or has_edges(op.name) or op.has_trait(ir.IsTerminatorTrait):
        return False
    operands, results = ([value for value in values if rank_of(value.type)] for values in (op.operands, op.results))
    return bool(results) and bool(operands or len(op.regions))


def _reason(op: Any) -> str:
    known = reason_without_rule(op.name)
    if known is not None:
        return known
    if not has_rule(op):
        return "no rule is registered for it"
    if not has_static_shapes(op):
        return "it has a dynamic shape"
    return "its registered rule does not support it here"
