# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applies sharding constraints that determine the sharding of their operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import owning_op, shardable_value, sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named_in_post_order
from mlir_shard.ir.values import insertion_point_after, users
from mlir_shard.passes.analyses import held
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Changes, ModulePass, register
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.debug_record import ConstraintRecord
from mlir_shard.transforms.shardings import rank_of

CONSTRAINT = "sdy.sharding_constraint"
MANUAL = "sdy.manual_computation"
NAMED = "sdy.named_computation"
EDGE = "sdy.data_flow_edge"


@register
class ApplyShardingConstraints(ModulePass):
    """Gives the operand of a fully closed sharding constraint the sharding of the constraint, if the operand has no
    sharding and no other constraint on it has a different one. In-shardings of manual computations are applied to
    their operands in the same way.

    If the operand belongs to a data-flow edge, its users use the result of the constraint instead. If a chain of
    constraints starts at a tensor that nothing else constrains, the last one determines the sharding from there on:
    later users of the tensor, except the return, use the result of the last constraint.
    """

    name = "sdy-apply-sharding-constraints"
    summary = "Applies constraints that dictate the sharding of their input"

    debug_sharding_origins: bool = option(False, "attach the origins of the sharding of each tensor")
    debug_propagation_edge_sharding: bool = option(
        False, "attach the constraints that determine the shardings of their operands"
    )

    def run(self, op: Any) -> bool | Changes:
        origins, edges = self.debug_sharding_origins, self.debug_propagation_edge_sharding
        record = ConstraintRecord(op, origins=origins, edges=edges) if origins or edges else None
        changes = _Changes()
        constraining = (CONSTRAINT, MANUAL)
        found = operations_named_in_post_order(op, *constraining) if held(op).has_any(constraining) else ()
        for inner in found:
            if inner.name == CONSTRAINT:
                changes.use_end_of_chain(inner)
                changes.apply_constraint(inner, record)
            else:
                for index, sharding in enumerate(inner.attributes["in_shardings"].value.shardings):
                    changes.apply_to_operand(inner, index, sharding)
        if record is not None:
            record.write()
            return True
        return Changes(changes.ops, changes.attributed) if changes.ops or changes.attributed else False


class _Changes:
    """The application of constraints, with the ops that it creates, moves or gives attributes."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        self.attributed: list[Any] = []

    def apply_constraint(self, constraint: Any, record: ConstraintRecord | None) -> None:
        """Applies a constraint to its operand."""
        tensor = constraint.operands[0]
        before = None if record is None else sharding_of(tensor)

        def moved() -> Any:
            _move_behind(constraint, tensor)
            return constraint

        self._apply(tensor, constraint.attributes["sharding"].value, moved)
        if record is not None:
            record.applied(constraint, before)

    def apply_to_operand(self, computation: Any, index: int, sharding: TensorSharding) -> None:
        """Applies the sharding that a manual computation has for an operand to the operand."""
        tensor = computation.operands[index]

        def added() -> Any:
            point = insertion_point_after(tensor)
            return sdy.ShardingConstraintOp(tensor, sharding, loc=computation.location, ip=point).operation

        self._apply(tensor, sharding, added)

    def _apply(self, tensor: Any, sharding: TensorSharding, constraint_behind: Callable[[], Any]) -> None:
        """Gives a tensor without a sharding that of a constraint if it is fully closed and no other constraint differs.

        constraint_behind: returns a constraint to that sharding right behind the tensor; called if one is needed.
        """
        if not sharding.is_fully_closed or sharding_of(tensor) is not None:
            return
        holder = shardable_value(tensor)
        if holder is None:
            return
        if not all(_asks_for(use, sharding) for use in tensor.uses):
            return
        if owning_op(holder).name != EDGE:
            self._attach(holder, sharding)
            return
        constraint = constraint_behind()
        self.ops.append(constraint)
        tensor.replace_all_uses_except(constraint.results[0], constraint)
        if sharding.unreduced_axes:
            # Unreduced axes do not propagate, so the constrained tensor has to have them itself.
            unreduced = TensorSharding.fully_open(rank_of(tensor.type), sharding.mesh_or_ref)
            unreduced = replace(unreduced, unreduced_axes=sharding.unreduced_axes, reduction_op=sharding.reduction_op)
            self._attach(shardable_value(tensor), unreduced)

    def _attach(self, holder: Any, sharding: TensorSharding) -> None:
        op = owning_op(holder)
        self.attributed.append(op)
        if not isinstance(holder.owner, ir.Block) or op.name != NAMED:
            sdy.set_sharding(holder, sharding)
            return
        arguments = op.regions[0].blocks[0].arguments
        ranks = [rank_of(argument.type) for argument in arguments]
        shardings = TensorShardingPerValue.fully_open(ranks, sharding.mesh_or_ref)
        number = ir.BlockArgument(holder).arg_number
        op.attributes["in_shardings"] = sdy.attribute(shardings.replace(number, sharding), op.context)

    def use_end_of_chain(self, head: Any) -> None:
        """Replaces the tensor of a chain of constraints that starts with `head` by the chain's end in later users."""
        tail = _end_of_chain(head)
        if tail is None:
            return
        self.ops.append(tail)
        for use in list(head.operands[0].uses):
            user = use.owner.operation
            if user == head or user.name == "func.return" or user.block != tail.block:
                continue
            if tail.is_before_in_block(user):
                user.operands[use.operand_number] = tail.results[0]


def _asks_for(use: Any, sharding: TensorSharding) -> bool:
    """Returns whether a user requires this sharding, or none."""
    user = use.owner.operation
    if user.name == CONSTRAINT:
        return bool(user.attributes["sharding"].value == sharding)
    return user.name != MANUAL or bool(user.attributes["in_shardings"].value.shardings[use.operand_number] == sharding)


def _move_behind(op: Any, value: Any) -> None:
    if not isinstance(value.owner, ir.Block):
        op.move_after(value.owner)
        return
    first = value.owner.operations[0].operation
    if op != first:
        op.move_before(first)


def _end_of_chain(head: Any) -> Any | None:
    """Returns the last of at least two constraints, each the only use of the one before it, from `head` on.

    Returns None if no such chain exists, if the tensor is sharded, or if others constrain it or the end of the chain.
    """
    tail = head
    while len(using := users(tail.results[0])) == 1 and using[0].name == CONSTRAINT:
        tail = using[0]
    if tail == head or _is_constrained(tail.results[0]):
        return None
    tensor = head.operands[0]
    if owning_op(tensor).name == CONSTRAINT or sharding_of(tensor) is not None or _is_constrained(tensor, besides=head):
        return None
    return tail


def _is_constrained(value: Any, besides: Any | None = None) -> bool:
    """Returns whether an op other than `besides` constrains a value."""
    constraining = (user for user in users(value) if user.name in (CONSTRAINT, MANUAL))
    return any(besides is None or user != besides for user in constraining)
