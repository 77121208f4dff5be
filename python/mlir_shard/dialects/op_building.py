# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the generated views of operations share: making attributes of Python values, and finding operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from mlir_shard.host import ir


def context_of(location: Any) -> Any:
    """The context of a location, None (the current context) without one."""
    return None if location is None else location.context


def type_of(value: Any) -> Any:
    """The type of a value, or of the only result of an operation."""
    return value.type if isinstance(value, ir.Value) else value.operation.result.type


def values_of(values: Any) -> list[Any]:
    """A group of operands: values, operations that stand for their only result, or the results of one operation."""
    if isinstance(values, (ir.Operation, ir.OpView)):
        return list(values.operation.results)
    return [value if isinstance(value, ir.Value) else value.operation.result for value in values]


def builtin_attribute(kind: str, value: Any, context: Any = None) -> Any:
    """The attribute that ODS calls `kind`, `I64Attr` say, of a Python value; an attribute stays itself."""
    if isinstance(value, ir.Attribute):
        return value
    if kind == "ElementsAttr":
        return ir.DenseElementsAttr.get(value, context=context)
    if not ir.AttrBuilder.contains(kind):
        raise TypeError(f"{value!r} cannot be made a {kind}: an attribute was expected")
    return ir.AttrBuilder.get(kind)(value, context=context)


def enum_attribute(value: Any, table: Mapping[int, Enum], width: int, context: Any = None) -> Any:
    """The integer attribute, `width` bits wide, for a member of an enum, given as such, by its name or value."""
    if isinstance(value, ir.Attribute):
        return value
    for number, member in table.items():
        if value is member or value in (member.name, member.value) or (not isinstance(value, Enum) and value == number):
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(width, context), number)
    raise ValueError(f"{value!r} is none of {', '.join(member.name for member in table.values())}")


def enum_member(attributes: Any, name: str, table: Mapping[int, Any], default: str | None) -> Any:
    """The member of an enum that the attribute `name` stands for, or the one named `default` if it is missing."""
    if name in attributes:
        return table[attributes[name].value]
    return next((member for member in table.values() if member.name == default), None)


def set_attribute(op: Any, name: str, attribute: Any) -> None:
    """Sets an attribute; None takes it away."""
    if attribute is not None:
        op.operation.attributes[name] = attribute
    elif name in op.operation.attributes:
        del op.operation.attributes[name]


def segment(values: Any, sizes: Any, index: int) -> Any:
    """Group number `index` of operands or results, `sizes` being the segment attribute."""
    lengths = list(ir.DenseI32ArrayAttr(sizes))
    start = sum(lengths[:index])
    return values[start : start + lengths[index]]


def only(values: Sequence[Any]) -> Any:
    """The value of a group of at most one, or None."""
    return values[0] if len(values) else None
