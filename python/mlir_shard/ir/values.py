# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of the host's IR: their definitions and uses, and the sizes of their elements."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, islice
from typing import Any

from mlir_shard.host import ir


def defining_op(value: Any, *names: str) -> Any | None:
    """Returns the operation that defines `value`. None for a block argument, or if it has none of the given names."""
    owner = value.owner
    if isinstance(owner, ir.Block) or (names and owner.operation.name not in names):
        return None
    return owner.operation


def is_token(type_: Any) -> bool:
    """Returns whether a type is `!stablehlo.token`, whose values only order effects."""
    return str(type_) == "!stablehlo.token"


def has_one_use(value: Any) -> bool:
    """Returns whether exactly one operand is `value`."""
    return len(list(islice(value.uses, 2))) == 1


def users(value: Any) -> list[Any]:
    """Returns the operations that use `value`, without duplicates, in no particular order."""
    # The hash of an operation takes time for each of its operands.
    found = [user for user, _ in groupby(use.owner.operation for use in value.uses)]
    return found if len(found) < 2 else list(dict.fromkeys(found))


Use = tuple[Any, int]
"""An operation that uses a value, and the number of the operand."""


def uses_of(value: Any) -> list[Use]:
    """Returns the current uses of `value` as a list, which does not change when uses are added."""
    return [(use.owner.operation, use.operand_number) for use in value.uses]


def replace_uses(uses: Iterable[Use], value: Any) -> None:
    """Replaces the operand of each of these uses by `value`."""
    for user, number in uses:
        user.operands[number] = value


def insertion_point_after(value: Any) -> Any:
    """Returns the point right after the op that defines a value, or at the start of the block of an argument."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner.operation)


def create_like(op: Any, operand: Any, attributes: dict[str, Any], name: str | None = None) -> Any:
    """Creates an operation with one operand before `op`, with the location, result type and by default name of `op`."""
    return ir.Operation.create(
        name or op.name,
        results=[op.results[0].type],
        operands=[operand],
        attributes=attributes,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )


def element_size(type_: Any) -> int | None:
    """Returns the size in bytes of an element of a tensor type. None if the size is not known."""
    element = type_.element_type
    parts = 1
    if isinstance(element, ir.ComplexType):
        element, parts = element.element_type, 2
    if isinstance(element, ir.IndexType):
        return 8 * parts
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        return None
    return -(-element.width * parts // 8)
