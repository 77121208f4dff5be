# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The shared code of generated views of operations: it makes attributes of Python values and finds operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from mlir_shard.host import ir


def context_of(location: Any) -> Any:
    """Returns the context of a location; None, which stands for the current context, without a location."""
    return None if location is None else location.context


def type_of(value: Any) -> Any:
    """Returns the type of a value, or of the only result of an operation."""
    return value.type if isinstance(value, ir.Value) else value.operation.result.type


def values_of(values: Any) -> list[Any]:
    """Returns the operands that values, operations with one result, or one operation with several results stand for."""
    if isinstance(values, (ir.Operation, ir.OpView)):
        return list(values.operation.results)
    return [value if isinstance(value, ir.Value) else value.operation.result for value in values]


def builtin_attribute(kind: str, value: Any, context: Any = None) -> Any:
    """Returns the attribute of the ODS kind `kind`, such as `I64Attr`, for a Python value; an attribute as it is."""
    if isinstance(value, ir.Attribute):
        return value
    if kind == "ElementsAttr":
        return ir.DenseElementsAttr.get(value, context=context)
    if not ir.AttrBuilder.contains(kind):
        raise TypeError(f"cannot convert {value!r} to {kind}: expected an attribute")
    return ir.AttrBuilder.get(kind)(value, context=context)


def enum_attribute(value: Any, table: Mapping[int, Enum], width: int, context: Any = None) -> Any:
    """Returns the integer attribute of `width` bits for a member of an enum, given as such, by name or by value."""
    if isinstance(value, ir.Attribute):
        return value
    for number, member in table.items():
        if value is member or value in (member.name, member.value) or (not isinstance(value, Enum) and value == number):
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(width, context), number)
    raise ValueError(f"invalid value {value!r}: expected one of {', '.join(member.name for member in table.values())}")


def enum_member(attributes: Any, name: str, table: Mapping[int, Any], default: str | None) -> Any:
    """Returns the member of an enum that the attribute `name` stands for; the member `default` if it is missing."""
    if name in attributes:
        return table[attributes[name].value]
    return next((member for member in table.values() if member.name == default), None)


def set_attribute(op: Any, name: str, attribute: Any) -> None:
    """Sets an attribute; None removes it."""
    if attribute is not None:
        op.operation.attributes[name] = attribute
    elif name in op.operation.attributes:
        del op.operation.attributes[name]


def segment(values: Any, sizes: Any, index: int) -> Any:
    """Returns group `index` of operands or results; `sizes` is the attribute with the lengths of the groups."""
    lengths = list(ir.DenseI32ArrayAttr(sizes))
    start = sum(lengths[:index])
    return values[start : start + lengths[index]]


def only(values: Sequence[Any]) -> Any:
    """Returns the value of a group of at most one value; None if the group is empty."""
    return values[0] if len(values) else None
