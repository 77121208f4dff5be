# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registrations whose mistakes are found only when the rules of an op are requested."""

from __future__ import annotations

from typing import Any

from mlir_shard import interfaces

interfaces.sharding_rule("broken.text", text="i k, k j -> i j")


@interfaces.sharding_rule("broken.raises")
def raises(op: Any, options: interfaces.RuleOptions) -> Any:
    return {"known": 1}[op.name]


@interfaces.sharding_rule("broken.nonsense")
def nonsense(op: Any, options: interfaces.RuleOptions) -> Any:
    return "i j -> i j"


@interfaces.sharding_rule("broken.fields")
def fields(op: Any, options: interfaces.RuleOptions) -> Any:
    return interfaces.OpShardingRule(8, None, None)


@interfaces.sharding_rule("broken.rank")
def rank(op: Any, options: interfaces.RuleOptions) -> Any:
    return interfaces.RuleBuilder([1], [1]).add_pointwise([8]).build()


@interfaces.sharding_rule("broken.size")
def size(op: Any, options: interfaces.RuleOptions) -> Any:
    return interfaces.RuleBuilder.for_op(op).add_pointwise([8, 8]).build()


@interfaces.sharding_rule("broken.factor")
def factor(op: Any, options: interfaces.RuleOptions) -> Any:
    mapping = interfaces.TensorMapping.of([0], [7])
    return interfaces.OpShardingRule((8, 4), (mapping,), (mapping,))


@interfaces.sharding_rule("broken.key", context_key=lambda op: op.parent.no_such_name)
def key(op: Any, options: interfaces.RuleOptions) -> Any:
    return None


@interfaces.data_flow_edges("broken.edges")
def edges(op: Any) -> Any:
    raise LookupError("no edges today")


@interfaces.data_flow_edges("broken.no_edges")
def no_edges(op: Any) -> Any:
    return [op.results[0]]


@interfaces.data_flow_edges("broken.shapes")
def shapes(op: Any) -> Any:
    yield interfaces.DataFlowEdge(op.results[0], (op.operands[0],))


@interfaces.data_flow_edges("broken.twice")
def twice(op: Any) -> Any:
    yield interfaces.DataFlowEdge(op.results[0], (op.operands[0],))
    yield interfaces.DataFlowEdge(op.results[0], (op.operands[1],))


@interfaces.data_flow_edges("broken.foreign")
def foreign(op: Any) -> Any:
    yield interfaces.DataFlowEdge(op.operands[0], (op.operands[0],))
