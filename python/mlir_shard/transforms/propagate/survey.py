# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a module that take part in propagation; properties are computed once for all ops of a signature."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlir_shard import _native
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.registry import depends_on_context
from mlir_shard.sharding import OpShardingRule
from mlir_shard.transforms.propagate.module_parts import op_class
from mlir_shard.transforms.propagate.value_graph import OpClass
from mlir_shard.transforms.shardings import RuleFor

# Ops that propagate without a rule; then all ops that are read in a special way.
NODES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge", "sdy.propagation_barrier")
_SPECIAL = (*NODES, "func.func", "func.return", "func.call", "sdy.return", "sdy.sharding_group")
_PASSING_ON = (OpClass.ELEMENTWISE, OpClass.RESHAPING, OpClass.SLICING, OpClass.EDGE)


class Signature(NamedTuple):
    """The properties that ops of one signature share.

    `asks_each` is for rules that depend on more than the signature. `watched` are the operands that count when an
    operand has other uses: those that can be sharded, of ops for which it matters.
    """

    name: str
    is_special: bool
    asks_each: bool
    rule: OpShardingRule | None
    op_class: OpClass
    watched: tuple[int, ...]
    has_edges: bool
    result_count: int

    @property
    def is_node(self) -> bool:
        """Whether all ops of the signature are nodes, by its rule."""
        return self.rule is not None and not self.is_special


class Survey:
    """The ops of a module by their role in propagation, before values have places.

    Without `reuses`, the rule of each op is computed for it alone. `lookups_first` is that of `op_class`. Raises
    RuleError if a rule fails.

    Attributes:
        representatives: the first op of each signature.
        nodes: the ops that are nodes of the graph.
        own_rules: the rules of ops whose rule depends on more than their signature.
        functions: the functions.
        returns: the terminator of each function or body.
        calls: the calls of each function.
        groups: the members of sharding groups.
        edge_ops: the ops with data-flow edges, with their names.
        edge_results: the result of the edge on each value.
        with_several_results: the ops with more than one result.
    """

    def __init__(self, arrays: ModuleArrays, rule_for: RuleFor, *, reuses: bool, lookups_first: bool = False) -> None:
        self._arrays = arrays
        self._rule_for = rule_for
        self._reuses = reuses
        self._lookups_first = lookups_first
        self._numbers = arrays.signatures
        self.representatives = arrays.representatives()
        self.signatures: list[Signature | None] = [None] * len(self.representatives)
        self.nodes: _native.Operations
        self.with_several_results: list[int] = []
        self.own_rules: dict[int, OpShardingRule | None] = {}
        self.functions: list[int] = []
        self.returns: dict[int, int] = {}
        self.calls: dict[str, list[int]] = {}
        self.groups: list[int] = []
        self.edge_ops: list[tuple[int, str]] = []
        self.edge_results: dict[int, int] = {}
        # The regions of an op with a rule compute its elements.
        reached = self._arrays.outermost(self._closes, self._is_closed)
        signatures = self.signatures
        takes_part = [s is not None and (s.is_node or s.asks_each or s.name in NODES) for s in signatures]
        self.nodes = reached.where(takes_part)
        looked_at = [s is not None and (s.is_special or s.has_edges) and not s.is_node for s in signatures]
        several = [s is not None and s.result_count > 1 for s in signatures]
        self.with_several_results = reached.where(several).numbers
        for op in reached.where(looked_at).numbers:
            if op not in self.own_rules:
                self._survey_op(op, self.signature(self._numbers[op]).name)

    def _closes(self, number: int) -> bool | None:
        signature = self.signature(number)
        return None if signature.asks_each else signature.is_node

    def _is_closed(self, op: int) -> bool:
        """Returns whether an op whose rule depends on more than its signature has a rule."""
        rule = self._rule_for(self._arrays.operation(op))
        if rule is not None:
            self.own_rules[op] = rule
        return rule is not None

    def signature(self, number: int) -> Signature:
        """Returns the properties that the ops of a signature share."""
        return self.signatures[number] or self._add_signature(number)

    def _add_signature(self, number: int) -> Signature:
        op = self.representatives[number]
        special = op.name in _SPECIAL
        asks_each = not special and (not self._reuses or depends_on_context(op))
        rule = None if special or asks_each else self._rule_for(op)
        class_ = op_class(op, lookups_first=self._lookups_first)
        watched = [i for i, value in enumerate(op.operands) if not _is_scalar(value)] if class_ in _PASSING_ON else ()
        signature = Signature(
            op.name, special, asks_each, rule, class_, tuple(watched), has_edges(op.name), len(op.results)
        )
        self.signatures[number] = signature
        return signature

    def _survey_op(self, op: int, name: str) -> None:
        match name:
            case "func.func":
                self.functions.append(op)
            case "func.return" | "sdy.return":
                self.returns[self._arrays.parents[op]] = op
            case "func.call":
                callee = self._arrays.operation(op).attributes["callee"].value
                self.calls.setdefault(callee, []).append(op)
            case "sdy.sharding_group":
                self.groups.append(op)
            case "sdy.data_flow_edge":
                self.edge_results[self._arrays.operands(op)[0]] = self._arrays.results(op)[0]
            case _ if name not in NODES:
                self.edge_ops.append((op, name))


def _is_scalar(value: Any) -> bool:
    """Returns whether a value can never be sharded because it has no dimensions."""
    return isinstance(value.type, ir.ShapedType) and not rank_of(value.type)
