# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all propagation passes do: read the module, propagate by a plan, write the shardings back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.diagnostic import warn
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure
from mlir_shard.rules import RuleError, RuleOptions
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.dead_code import erase_dead_code
from mlir_shard.transforms.dynamic_shapes import is_dynamic
from mlir_shard.transforms.propagate.debug_propagation import begin_record, write_record
from mlir_shard.transforms.propagate.phases import Plan, disagreeing_groups, propagate
from mlir_shard.transforms.propagate.read_module import ModuleReader
from mlir_shard.transforms.propagate.sdy_populate_op_sharding_rules import is_describable
from mlir_shard.transforms.propagate.write_shardings import write_shardings
from mlir_shard.transforms.rule_cache import rule_cache


class PropagationPass(Pass):
    """A pass that propagates by a plan."""

    anchor = "builtin.module"

    keep_sharding_rules: bool = option(False, "keep the sharding rules of ops, given and found, as attributes")
    conservative_propagation: bool = option(False, "do not split axes, nor shard factors that then need communication")
    debug_sharding_origins: bool = option(False, "say where the sharding of each tensor is from, as attributes")
    debug_propagation_edge_sharding: bool = option(False, "say in which steps axes went through each op, as attributes")

    def plan(self) -> Plan:
        """The plan that the options of the pass ask for."""
        raise NotImplementedError(f"pass '{self.name}' has no method `plan`")

    def run(self, op: Any) -> None:
        plan = self.plan()
        # Shardy's driver erases it where it comes by.
        erase_dead_code(op)
        try:
            reader = self._read(op, plan)
            if _separate_groups(reader):
                reader = self._read(op, plan)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error
        original = reader.graph.states[:]
        origins, edges = self.debug_sharding_origins, self.debug_propagation_edge_sharding
        record = begin_record(op, reader, origins=origins) if origins or edges else None
        propagate(reader.graph, plan, record)
        write_shardings(reader, original)
        if record is not None:
            write_record(reader, record, origins=origins, edges=edges)
        if self.keep_sharding_rules:
            _attach_rules(reader)
        else:
            _remove_rules(reader)

    def _read(self, module: Any, plan: Plan) -> ModuleReader:
        rules = rule_cache(RuleOptions(conservative=self.conservative_propagation))
        reader = ModuleReader(module, rules, by_op_name=plan.by_op_name)
        _reject_unsupported_types(reader.first_ops())
        return reader


def _reject_unsupported_types(ops: Iterable[Any]) -> None:
    for op in ops:
        for number, result in enumerate(op.results):
            type_ = result.type
            if isinstance(type_, ir.TupleType):
                raise PassFailure(f"propagation does not look into tuples, but a result has type {type_}", op)
            if is_dynamic(type_):
                why = f"propagation needs static shapes, but result {number} has type {type_}"
                raise PassFailure(f"'{op.name}' op: {why}", op)


def _separate_groups(reader: ModuleReader) -> bool:
    """Where members of a group have different shardings, puts an open constraint behind each; whether it had to.

    The group is then one of the constraints, and each member keeps the sharding it has.
    """
    groups = disagreeing_groups(reader.graph)
    for members, sharding in groups:
        values = [reader.arrays.value(place - 1).maybe_downcast() for place in members]
        claims = [
            (f"this one has {_spelled(reader.graph.sharding(place))}", values[i]) for i, place in enumerate(members)
        ]
        warn("the members of a sharding group have different shardings, so each keeps its own", values[0], claims)
        for value in values:
            block = isinstance(value.owner, ir.Block)
            point = ir.InsertionPoint.at_block_begin(value.owner) if block else ir.InsertionPoint.after(value.owner)
            open_like = TensorSharding.fully_open(sharding.rank, sharding.mesh_or_ref)
            constraint = sdy.ShardingConstraintOp(value, open_like, loc=value.location, ip=point)
            value.replace_all_uses_except(constraint.result, constraint.operation)
    return bool(groups)


def _spelled(sharding: TensorSharding | None) -> str:
    return "none" if sharding is None else str(sharding)


def _attach_rules(reader: ModuleReader) -> None:
    for op, rule in reader.ops_with_rules():
        if is_describable(op):
            op.attributes[sdy.SHARDING_RULE] = sdy.attribute(rule)


def _remove_rules(reader: ModuleReader) -> None:
    """Takes away all rules that are not the user's."""
    uses, distinct = reader.arrays.attributed(sdy.SHARDING_RULE)
    for op, index in uses:
        if not sdy.value(distinct[index]).is_custom_rule:
            del reader.arrays.operation(op).attributes[sdy.SHARDING_RULE]
