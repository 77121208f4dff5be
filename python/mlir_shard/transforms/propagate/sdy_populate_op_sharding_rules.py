# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sharding rules of ops, to be looked at."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.rules import RuleError, RuleOptions
from mlir_shard.transforms.rule_cache import rule_cache
from mlir_shard.transforms.walk import ops_below


@register
class PopulateOpShardingRules(Pass):
    """Attaches to each op the sharding rule that propagation would use for it.

    An op with an operand or result that is no tensor is left without: the attribute cannot say what those map to.
    """

    name = "sdy-populate-op-sharding-rules"
    anchor = "func.func"
    summary = "Populates all registered ops with an OpShardingRuleAttr"

    conservative_propagation: bool = option(False, "leave out factors that need communication to shard")

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
    """Whether a rule of this op can be attached to it: all its operands and results have a shape."""
    return all(isinstance(value.type, ir.ShapedType) for value in (*op.operands, *op.results))
