# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes of the right kind: the typed value of an operation's attribute, or a violation.

An attribute whose value breaks an invariant of its own, a mesh with an axis twice say, cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from mlir_shard.asm import AsmSyntaxError
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.verifiers.violation import Check, Violation
from mlir_shard.host import ir
from mlir_shard.sharding import (
    AllToAllParamList,
    AxisRefList,
    ListOfAxisRefLists,
    ManualAxes,
    Mesh,
    OpShardingRule,
    PropagationEdges,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)

T = TypeVar("T")

MNEMONICS: Mapping[type, str] = {
    AllToAllParamList: "all_to_all_param_list",
    AxisRefList: "axis_ref_list",
    ListOfAxisRefLists: "list_of_axis_ref_lists",
    ManualAxes: "manual_axes",
    Mesh: "mesh",
    OpShardingRule: "op_sharding_rule",
    PropagationEdges: "propagation_edges",
    TensorSharding: "sharding",
    TensorShardingPerValue: "sharding_per_value",
}

REDUCTION_OPS = (ReductionOp.SUM, ReductionOp.MAX, ReductionOp.MIN)


def value_as(attribute: Any, kind: type[T], name: str) -> T:
    """The value of `attribute`, which goes by `name`, where it is of the dataclass `kind`."""
    expected = f"must be a #sdy.{MNEMONICS[kind]}"
    if not isinstance(attribute, SdyAttribute):
        raise Violation(f"attribute '{name}' {expected}, got {attribute}")
    try:
        value = attribute.value
    except AsmSyntaxError as error:
        raise Violation(f"attribute '{name}' {expected}: {error}") from None
    if not isinstance(value, kind):
        raise Violation(f"attribute '{name}' {expected}, got a #sdy.{attribute.mnemonic}")
    return value


def optional(op: Any, name: str, kind: type[T]) -> T | None:
    """The value of the operation's attribute `name`, None where it has none."""
    return value_as(op.attributes[name], kind, name) if name in op.attributes else None


def required(op: Any, name: str, kind: type[T]) -> T:
    """The value of the operation's attribute `name`."""
    if name not in op.attributes:
        raise Violation(f"needs an attribute '{name}', a #sdy.{MNEMONICS[kind]}")
    return value_as(op.attributes[name], kind, name)


def required_string(name: str) -> Check:
    """Checks that the attribute `name` is a string."""

    def check(op: Any) -> None:
        if name not in op.attributes or not isinstance(op.attributes[name], ir.StringAttr):
            raise Violation(f"needs a string attribute '{name}'")

    return check


def integer(op: Any, name: str, width: int, default: int | None = None) -> int:
    """The value of a signless integer attribute of the given width in bits; without `default` it must be there."""
    if name not in op.attributes:
        if default is None:
            raise Violation(f"needs an attribute '{name}', an integer of type i{width}")
        return default
    attribute = op.attributes[name]
    if not isinstance(attribute, ir.IntegerAttr) or str(attribute.type) != f"i{width}":
        raise Violation(f"attribute '{name}' must be an integer of type i{width}, got {attribute}")
    return int(attribute.value)


def reduction_op(op: Any) -> ReductionOp:
    """The value of the attribute `reduction_op`, sum where there is none."""
    value = integer(op, "reduction_op", 32, default=0)
    if not 0 <= value < len(REDUCTION_OPS):
        raise Violation(f"attribute 'reduction_op' must be 0 (sum), 1 (max) or 2 (min), got {value}")
    return REDUCTION_OPS[value]
