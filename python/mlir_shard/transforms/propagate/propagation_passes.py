# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The propagation passes: read the module, propagate by a plan of phases, write the shardings back."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mlir_shard.dialects import sdy
from mlir_shard.dialects.registered_function import RegistrationError
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions
from mlir_shard.ir.values import insertion_point_after
from mlir_shard.passes.analyses import held
from mlir_shard.passes.diagnostic import warn
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, ModulePass, PassFailure, register
from mlir_shard.rules import RuleError, RuleOptions
from mlir_shard.rules.registry import check_order, is_among, op_priorities
from mlir_shard.sharding import OpShardingRule, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import without_priorities
from mlir_shard.transforms.dead_code import erase_dead_code
from mlir_shard.transforms.debug_record import Record
from mlir_shard.transforms.kept_collectives import kept_collectives
from mlir_shard.transforms.limits import is_dynamic
from mlir_shard.transforms.propagate.module_parts import set_body_shardings
from mlir_shard.transforms.propagate.phases import STRATEGIES, Plan, disagreeing_groups, phases, propagate
from mlir_shard.transforms.propagate.propagation_record import begin_record, write_record
from mlir_shard.transforms.propagate.read_module import ModuleReader
from mlir_shard.transforms.propagate.sharding_rules import is_describable
from mlir_shard.transforms.shardings import Side, rules_of_run, set_shardings, shardings_of
from mlir_shard.transforms.verified_repetition import change_verified, verify_repetition


def write_shardings(reader: ModuleReader, original: array[int]) -> list[Any]:
    """Writes the sharding of each place whose state differs from the `original` one.

    Returns the operations with changes of attributes other than `sdy.sharding`.
    """
    arrays, graph = reader.arrays, reader.graph
    context = arrays.operation(0).context if len(arrays) else None

    def per_value(state: int) -> Any:
        return sdy.attribute(TensorShardingPerValue((_sharding(reader, state),)), context)

    def single(state: int) -> Any:
        return sdy.attribute(_sharding(reader, state), context)

    written: list[Any] = []
    unwritten = original
    for key, is_per_value in sdy.SHARDING_KEYS.items():
        holders = reader.signatures_with(key)
        if key != sdy.SHARDING and not any(holders):
            continue
        make = per_value if is_per_value else single
        others, ops = arrays.write_states(graph.states, unwritten, holders, key, make)
        if key != sdy.SHARDING:
            written += map(arrays.operation, ops)
        unwritten = graph.states[:]
        for place in others:
            unwritten[place] = original[place]
    functions: dict[tuple[int, Side], dict[int, TensorSharding]] = {}
    results: dict[int, dict[int, TensorSharding]] = {}
    bodies: dict[Any, dict[Any, TensorSharding]] = {}
    for place in others:
        state = graph.states[place]
        sharding = graph.table[state]
        if sharding is None:
            continue
        if place >= reader.first_result:
            function, index = reader.results[place - reader.first_result]
            functions.setdefault((function, Side.RESULTS), {})[index] = sharding
        elif arrays.definers[place - 1] >= 0:
            results.setdefault(arrays.definers[place - 1], {})[place - 1] = sharding
        elif place - 1 in reader.argument_of:
            function, index = reader.argument_of[place - 1]
            functions.setdefault((function, Side.ARGUMENTS), {})[index] = sharding
        else:
            argument = arrays.value(place - 1).maybe_downcast()
            bodies.setdefault(argument.owner.owner.operation, {})[argument] = sharding
    for op, of_results in results.items():
        numbers = enumerate(arrays.results(op))
        sdy.set_shardings(arrays.operation(op), {i: of_results[value] for i, value in numbers if value in of_results})
        written.append(arrays.operation(op))
    for owner, of_arguments in bodies.items():
        set_body_shardings(owner, of_arguments)
        written.append(owner)
    for (function, side), changed in functions.items():
        signature = arrays.operation(function)
        old = shardings_of(signature, side)
        set_shardings(signature, side, [changed.get(index, sharding) for index, sharding in enumerate(old)])
    return written


def _sharding(reader: ModuleReader, state: int) -> TensorSharding:
    sharding = reader.graph.table[state]
    if sharding is None:
        raise ValueError("propagation removed a sharding")
    return sharding


Observer = Callable[[ModuleReader, Sequence[int], Record[int]], None]
"""Called with a module read and propagated, the states of its places before that, and the record of the steps."""


class PropagationPass(ModulePass):
    """A pass that propagates by a plan."""

    keep_sharding_rules: bool = option(False, "keep the sharding rules of ops, both given and inferred, as attributes")
    keep_particular_rules: bool = option(
        False, "keep, as attributes, given sharding rules and inferred ones that depend on neighbouring ops"
    )
    conservative_propagation: bool = option(False, "do not split axes or shard factors that require communication")
    debug_sharding_origins: bool = option(False, "attach the origins of the sharding of each tensor")
    debug_propagation_edge_sharding: bool = option(False, "attach the steps in which axes propagate through each op")
    verify_repetition: bool = verify_repetition()

    observers: ClassVar[tuple[Observer, ...]] = ()
    """Functions called for each propagation of the pass before its results are written to the module."""

    def plan(self) -> Plan:
        """Returns the plan for the options of the pass."""
        raise NotImplementedError(f"pass '{self.name}' has no method `plan`")

    def run(self, op: Any) -> Changes | None:
        plan = self.plan()
        # Shardy's greedy rewrite driver erases dead code as well.
        erase_dead_code(op, held(op))
        reader = self._read(op, plan)
        separated = _separate_groups(reader)
        if separated:
            reader = self._read(op, plan)
        if self.verify_repetition:

            def change(module: Any, reuses: bool) -> None:
                self._propagate(module, self._read(module, plan, reuses), plan)

            change_verified(op, change)
            return None
        changes = self._propagate(op, reader, plan)
        is_all = not (separated or self.debug_sharding_origins or self.debug_propagation_edge_sharding)
        return changes if is_all else None

    def _propagate(self, op: Any, reader: ModuleReader, plan: Plan) -> Changes:
        """Returns the changes other than debug information."""
        original = reader.graph.states[:]
        origins, edges = self.debug_sharding_origins, self.debug_propagation_edge_sharding
        record = begin_record(op, reader, origins=origins) if origins or edges or self.observers else None
        propagate(reader.graph, plan, record)
        if record is not None:
            for observe in self.observers:
                observe(reader, original, record)
        with kept_collectives(op) as resharded:
            written = write_shardings(reader, original)
        if record is not None:
            write_record(reader, record, origins=origins, edges=edges)
        if self.keep_sharding_rules:
            _attach_rules(reader.ops_with_rules())
            return Changes(resharded, written, (sdy.SHARDING, sdy.SHARDING_RULE))
        if self.keep_particular_rules:
            written += _attach_rules(reader.ops_with_rules_of_context())
        elif sdy.SHARDING_RULE in held(op).attributes:
            written += _remove_rules(reader)
        return Changes(resharded, written, (sdy.SHARDING,))

    def _read(self, module: Any, plan: Plan, reuses: bool = True) -> ModuleReader:
        rule_for = rules_of_run(RuleOptions(conservative=self.conservative_propagation), reuses=reuses)
        try:
            reader = ModuleReader(
                module,
                rule_for,
                by_op_name=plan.by_op_name,
                lookups_first=plan.lookups_first,
                has_own_sizes=self.keep_sharding_rules,
                reuses=reuses,
            )
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error
        _reject_unsupported_types(reader.first_ops())
        return reader


def _reject_unsupported_types(ops: Iterable[Any]) -> None:
    for op in ops:
        for number, result in enumerate(op.results):
            type_ = result.type
            if isinstance(type_, ir.TupleType):
                raise PassFailure(f"propagation does not support tuples, but a result has type {type_}", op)
            if is_dynamic(type_):
                why = f"propagation requires static shapes, but result {number} has type {type_}"
                advice = "set sizes with shard-run --shape or --shard-make-static"
                raise PassFailure(f"'{op.name}' op: {why}; {advice}", op)


def _separate_groups(reader: ModuleReader) -> bool:
    """Puts open constraints after the members of groups with different shardings; returns whether there were any.

    The group then consists of the constraints, and each member keeps its sharding.
    """
    groups = disagreeing_groups(reader.graph)
    for members, sharding in groups:
        values = [reader.arrays.value(place - 1).maybe_downcast() for place in members]
        claims = [
            (f"this one has {_spelled(reader.graph.sharding(place))}", values[i]) for i, place in enumerate(members)
        ]
        warn("the members of a sharding group have different shardings, so each keeps its own", values[0], claims)
        for value in values:
            open_like = TensorSharding.fully_open(sharding.rank, sharding.mesh_or_ref)
            point = insertion_point_after(value)
            constraint = sdy.ShardingConstraintOp(value, open_like, loc=value.location, ip=point)
            value.replace_all_uses_except(constraint.result, constraint.operation)
    return bool(groups)


def _spelled(sharding: TensorSharding | None) -> str:
    return "none" if sharding is None else str(sharding)


def _attach_rules(ops: Iterable[tuple[Any, OpShardingRule]]) -> list[Any]:
    """Attaches the rules that an attribute can express; returns their operations."""
    attributed = []
    for op, rule in ops:
        if is_describable(op):
            op.attributes[sdy.SHARDING_RULE] = sdy.attribute(rule)
            attributed.append(op)
    return attributed


def _remove_rules(reader: ModuleReader) -> list[Any]:
    """Removes all rules that are not the user's; returns their operations."""
    uses, distinct = reader.arrays.attributed(sdy.SHARDING_RULE)
    removed = [reader.arrays.operation(op) for op, index in uses if not sdy.value(distinct[index]).is_custom_rule]
    for op in removed:
        del op.attributes[sdy.SHARDING_RULE]
    return removed


@register
class BasicPropagate(PropagationPass):
    """Propagates the shardings of values to all other values, forward and backward, along the factors of each op's
    sharding rule, until nothing changes.

    A factor is sharded along the longest list of axes that conflicts with no operand or result. An op without a rule
    blocks propagation.
    """

    name = "sdy-basic-propagate"
    summary = "Runs the basic sharding propagation algorithm"

    def plan(self) -> Plan:
        return Plan(STRATEGIES["basic"], conservative=self.conservative_propagation)


@register
class AggressivePropagate(PropagationPass):
    """Propagates like `sdy-basic-propagate`, but the tensors of an op may differ along a factor: each is sharded along
    as many axes as possible. If two factors need the same axis in a tensor, the one whose sharding comes from the
    larger tensor gets it.

    Fewer dimensions remain replicated, at the cost of communication where tensors differ.
    """

    name = "sdy-aggressive-propagate"
    summary = "Runs the aggressive sharding propagation algorithm"

    propagation_strategy: str = option(
        "aggressive", "the strategies that resolve conflicts, in order", tuple(STRATEGIES)
    )

    def plan(self) -> Plan:
        return Plan(STRATEGIES[self.propagation_strategy], conservative=self.conservative_propagation)


@register
class OpPriorityPropagate(AggressivePropagate):
    """Propagates like `sdy-aggressive-propagate`, in several phases, each through more ops and in more directions than
    the previous one: the first through elementwise and similar ops whose operands have no other uses, the last through
    all ops in both directions.

    Ops in `op-priorities` propagate before all these phases, and before the ops that a dialect has registered: one
    after the other, or together if they are in braces.
    """

    name = "sdy-op-priority-propagate"
    summary = "Runs the op-priority propagation algorithm"

    run_op_priority_propagation: bool = option(True, "propagate in the order of op priorities")
    op_priorities: tuple[tuple[str, ...], ...] = option(
        (), "ops that propagate before all others, in this order: dialect.op, dialect.*, or a group of them in braces"
    )
    lookups_first: bool = option(
        False,
        "propagate through gathers in the phases of slices, through unit broadcasts in those of reshapes, and through "
        "scatters after products",
    )

    def plan(self) -> Plan:
        plan = super().plan()
        if self.run_op_priority_propagation:
            order = self._order()
            lookups = self.lookups_first
            return replace(plan, phases=phases(order), by_op_name=bool(order), lookups_first=lookups)
        if self.op_priorities:
            raise PassFailure("op-priorities have no effect with run-op-priority-propagation=false")
        return plan

    def _order(self) -> list[tuple[str, ...]]:
        try:
            check_order(self.op_priorities)
        except RegistrationError as error:
            raise PassFailure(f"op-priorities: {error}") from error
        for group in self.op_priorities:
            for name in group:
                _check_is_op(name)
        registered = [
            tuple(name for name in group if not any(is_among(name, own) for own in self.op_priorities))
            for group in op_priorities()
        ]
        return [*self.op_priorities, *filter(None, registered)]


def _check_is_op(name: str) -> None:
    """Raises PassFailure if no program in this context can contain an op of this name."""
    context = ir.Context.current
    if context.allow_unregistered_dialects or name.endswith(".*") or context.is_registered_operation(name):
        return
    raise PassFailure(f"op-priorities: unknown op '{name}': no loaded dialect registers it")


@register
class UserPriorityPropagate(OpPriorityPropagate):
    """Propagates like `sdy-op-priority-propagate`, once for each priority of a dimension sharding, in ascending order
    from 0; a dimension participates from its own priority on. Afterwards no sharding has priorities.
    """

    name = "sdy-user-priority-propagate"
    summary = "Runs the user-priority propagation algorithm"

    def plan(self) -> Plan:
        return replace(super().plan(), by_user_priority=True)

    def run(self, op: Any) -> Changes | None:
        changes = super().run(op)
        # Propagation does not reach the results of called functions: their shardings lose their priorities here.
        for function in functions(op).values():
            shardings = shardings_of(function, Side.RESULTS)
            plain = {one: without_priorities(one) for one in set(shardings) if one is not None}
            if any(one != without for one, without in plain.items()):
                set_shardings(function, Side.RESULTS, [one and plain[one] for one in shardings])
        return changes
