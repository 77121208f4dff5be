# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The verifier of each sdy operation, attached to the dialect when it is loaded.

A verifier emits one error, which says what is wrong and what would be right, and returns False. It runs before the
operations in its operation's regions and after it are verified, so it relies on nothing that they keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir_shard.dialects.verifiers.attributes import integer, required, required_string
from mlir_shard.dialects.verifiers.collectives import COLLECTIVES
from mlir_shard.dialects.verifiers.computations import check_body, check_manual_computation, check_named_computation
from mlir_shard.dialects.verifiers.edges import (
    check_data_flow_edge,
    check_func_data_flow_edge,
    check_only_user,
    check_propagation_barrier,
)
from mlir_shard.dialects.verifiers.sharding import check_becomes_sharding, check_sharding_attribute
from mlir_shard.dialects.verifiers.types import (
    check_one_operand,
    check_ranked_tensors,
    check_same_type,
    check_shaped,
    check_static_result,
)
from mlir_shard.dialects.verifiers.violation import Violation, verifier
from mlir_shard.host import ir
from mlir_shard.sharding import Mesh

_VISIBILITIES = ('"public"', '"private"', '"nested"')


def check_mesh_op(op: Any) -> None:
    """The mesh has a name and is right under a module."""
    required_string("sym_name")(op)
    if op.parent is None or op.parent.operation.name != "builtin.module":
        around = "nothing" if op.parent is None else f"'{op.parent.operation.name}'"
        raise Violation(f"has to be right under a 'builtin.module', got {around}")
    visibility = op.attributes.get("sym_visibility")
    if visibility is not None and str(visibility) not in _VISIBILITIES:
        raise Violation(f"attribute 'sym_visibility' must be one of {', '.join(_VISIBILITIES)}, got {visibility}")
    required(op, "mesh", Mesh)


def check_sharding_group(op: Any) -> None:
    """The group's id is not negative."""
    group = integer(op, "group_id", 64)
    if group < 0:
        raise Violation(f"has group_id {group}, but the id of a group is not negative")


def check_constant(op: Any) -> None:
    """The result is of the value's type, a tensor of static shape."""
    if len(op.operands) or len(op.results) != 1:
        raise Violation("takes no operand and gives one result")
    if "value" not in op.attributes:
        raise Violation("needs an attribute 'value', the elements of a tensor")
    value, result = op.attributes["value"], op.results[0].type
    type_ = getattr(value, "type", None)
    if not isinstance(type_, ir.RankedTensorType):
        raise Violation(f"attribute 'value' must be the elements of a ranked tensor, got {value}")
    if type_ != result:
        raise Violation(f"must have a result of its value's type {type_}, got {result}")


VERIFIERS: Mapping[str, Callable[[Any], bool]] = {
    "sdy.mesh": verifier(check_mesh_op),
    "sdy.sharding_constraint": verifier(check_same_type, check_sharding_attribute, check_becomes_sharding),
    "sdy.reshard": verifier(check_same_type, check_sharding_attribute, check_becomes_sharding),
    "sdy.manual_computation": verifier(check_body, check_manual_computation),
    "sdy.named_computation": verifier(required_string("name"), check_body, check_named_computation),
    "sdy.sharding_group": verifier(check_one_operand, check_ranked_tensors, check_sharding_group),
    "sdy.constant": verifier(check_constant, check_static_result),
    "sdy.data_flow_edge": verifier(
        check_same_type, check_shaped, check_static_result, check_only_user, check_data_flow_edge
    ),
    "sdy.func_data_flow_edge": verifier(
        check_same_type, check_shaped, check_static_result, check_only_user, check_func_data_flow_edge
    ),
    "sdy.propagation_barrier": verifier(check_same_type, check_ranked_tensors, check_propagation_barrier),
    **{name: verifier(check_same_type, check_shaped, check) for name, check in COLLECTIVES.items()},
}
