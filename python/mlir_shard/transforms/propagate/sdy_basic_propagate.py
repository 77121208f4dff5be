# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation without conflict resolution: a tensor takes the axes on which all tensors of an op agree."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.rules import RuleCache, RuleError, RuleOptions
from mlir_shard.transforms.propagate.fixpoint import Fixpoint
from mlir_shard.transforms.propagate.sdy_populate_op_sharding_rules import is_describable
from mlir_shard.transforms.propagate.value_graph import ValueGraph, read_module
from mlir_shard.transforms.walk import ops_below


@register
class BasicPropagate(Pass):
    """Propagates the shardings that values have to all others, forward and backward, along the factors of each op's
    sharding rule, until nothing changes.

    A factor is sharded along the longest list of axes that contradicts nothing in any operand or result. An op
    without a rule lets nothing through.
    """

    name = "sdy-basic-propagate"
    anchor = "builtin.module"
    summary = "Runs the basic sharding propagation algorithm"

    keep_sharding_rules: bool = option(False, "keep the sharding rules of ops, given and found, as attributes")
    conservative_propagation: bool = option(False, "do not split axes, nor shard factors that then need communication")

    def run(self, op: Any) -> None:
        _reject_dynamic_types(op)
        rules = RuleCache(RuleOptions(conservative=self.conservative_propagation))
        try:
            graph = read_module(op, rules)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error
        Fixpoint(graph, conservative=self.conservative_propagation).run()
        graph.write_back()
        if self.keep_sharding_rules:
            _attach_rules(graph)
        else:
            _remove_rules(op)


def _reject_dynamic_types(module: Any) -> None:
    for op in ops_below(module):
        for result in op.results:
            type_ = result.type
            if isinstance(type_, ir.TupleType):
                raise PassFailure(f"propagation does not look into tuples, but a result has type {type_}", op)
            if isinstance(type_, ir.ShapedType) and not (type_.has_rank and type_.has_static_shape):
                raise PassFailure(f"propagation needs static shapes, but a result has type {type_}", op)


def _attach_rules(graph: ValueGraph) -> None:
    for node in graph.nodes:
        if is_describable(node.op):
            node.op.attributes[sdy.SHARDING_RULE] = sdy.attribute(node.rule)


def _remove_rules(module: Any) -> None:
    for op in ops_below(module):
        attributes = op.attributes
        if sdy.SHARDING_RULE in attributes:
            rule = attributes[sdy.SHARDING_RULE]
            if isinstance(rule, SdyAttribute) and not rule.value.is_custom_rule:
                del attributes[sdy.SHARDING_RULE]
