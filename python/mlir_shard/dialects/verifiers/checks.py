# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared checks of verifiers: kinds of attributes, operand and result types, and the exception that they raise."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mlir_shard.asm import AsmSyntaxError, mnemonic_of_type
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.dialects.data_flow_edges import is_static
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.host import ir
from mlir_shard.sharding import (
    ReductionOp,
)
from mlir_shard.sharding.verify.tensor import NoShape, Shape

Check = Callable[[Any], None]
_UNKNOWN_MESH = re.compile(r"unknown mesh \S+$")


class Violation(Exception):
    """An operation breaks an invariant; the message gives the error and the requirement, without the op's name."""


def require(message: str | None) -> None:
    """Raises Violation with the message of a pure check, if there is one."""
    if message is not None:
        raise Violation(message)


def report(op: Any, violation: Violation | InterfaceError) -> None:
    """Emits a violation as an error at the operation; an InterfaceError at the operation of that error."""
    if isinstance(violation, InterfaceError):
        violation.op.location.emit_error(str(violation))
    else:
        op.location.emit_error(f"'{op.name}' op {violation}{_known_meshes(op, str(violation))}")


def _known_meshes(op: Any, message: str) -> str:
    """Returns the end of an error message about an unknown mesh, which lists the meshes of the module."""
    module = next((around for around in ancestors(op) if around.name == "builtin.module"), None)
    if module is None or _UNKNOWN_MESH.search(message) is None:
        return ""
    meshes = [one.operation for one in module.regions[0].blocks[0].operations if one.operation.name == "sdy.mesh"]
    names = [f"@{mesh.attributes['sym_name'].value}" for mesh in meshes if "sym_name" in mesh.attributes]
    return f": the module has {', '.join(names) or 'no mesh'}"


class _Deferring(threading.local):
    is_on = False


_deferring = _Deferring()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Makes verifiers accept every operation in this thread; the caller runs them later, see `Verified.accept`."""
    before, _deferring.is_on = _deferring.is_on, True
    try:
        yield
    finally:
        _deferring.is_on = before


def verifier(*checks: Check) -> Callable[[Any], bool]:
    """Returns a function that runs the checks on an operation; it reports the first violation and returns False."""

    def verify(op: Any) -> bool:
        if _deferring.is_on:
            return True
        try:
            for check in checks:
                check(op.operation)
        except (Violation, InterfaceError) as violation:
            report(op.operation, violation)
            return False
        return True

    return verify


T = TypeVar("T")
REDUCTION_OPS = (ReductionOp.SUM, ReductionOp.MAX, ReductionOp.MIN)


def value_as(attribute: Any, kind: type[T], name: str) -> T:
    """Returns the value of `attribute`, called `name` in errors. Raises Violation if it is not of the class `kind`."""
    expected = f"must be a #sdy.{mnemonic_of_type(kind)}"
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
    """Returns the value of the operation's attribute `name`; None if the operation does not have it."""
    return value_as(op.attributes[name], kind, name) if name in op.attributes else None


def required(op: Any, name: str, kind: type[T]) -> T:
    """Returns the value of the operation's attribute `name`. Raises Violation if the operation does not have it."""
    if name not in op.attributes:
        raise Violation(f"requires an attribute '{name}', a #sdy.{mnemonic_of_type(kind)}")
    return value_as(op.attributes[name], kind, name)


def required_string(name: str) -> Check:
    """Returns a check that the attribute `name` exists and is a string."""

    def check(op: Any) -> None:
        if name not in op.attributes or not isinstance(op.attributes[name], ir.StringAttr):
            raise Violation(f"requires a string attribute '{name}'")

    return check


def integer(op: Any, name: str, width: int, default: int | None = None) -> int:
    """Returns the value of a signless integer attribute of `width` bits, which is required without a `default`."""
    if name not in op.attributes:
        if default is None:
            raise Violation(f"requires an attribute '{name}', an integer of type i{width}")
        return default
    attribute = op.attributes[name]
    if not isinstance(attribute, ir.IntegerAttr) or str(attribute.type) != f"i{width}":
        raise Violation(f"attribute '{name}' must be an integer of type i{width}, got {attribute}")
    return int(attribute.value)


def reduction_op(op: Any) -> ReductionOp:
    """Returns the value of the attribute `reduction_op`; sum if none exists."""
    value = integer(op, "reduction_op", 32, default=0)
    if not 0 <= value < len(REDUCTION_OPS):
        raise Violation(f"attribute 'reduction_op' must be 0 (sum), 1 (max) or 2 (min), got {value}")
    return REDUCTION_OPS[value]


def check_one_operand(op: Any) -> None:
    """Checks that there is exactly one operand."""
    if len(op.operands) != 1:
        raise Violation(f"must have one operand, got {len(op.operands)}")


def check_same_type(op: Any) -> None:
    """Checks that there is one operand and one result of the same type."""
    check_one_operand(op)
    if len(op.results) != 1:
        raise Violation(f"must have one result, got {len(op.results)}")
    operand, result = op.operands[0].type, op.results[0].type
    if operand != result:
        raise Violation(f"must have a result of its operand's type {operand}, got {result}")


def check_shaped(op: Any) -> None:
    """Checks that every operand and result has a shaped type."""
    for value in (*op.operands, *op.results):
        if not isinstance(value.type, ir.ShapedType):
            raise Violation(f"requires shaped types (tensors, vectors, memrefs), got {value.type}")


def check_ranked_tensors(op: Any) -> None:
    """Checks that every operand and result is a ranked tensor."""
    for value in (*op.operands, *op.results):
        if not isinstance(value.type, ir.RankedTensorType):
            raise Violation(f"requires ranked tensors, got {value.type}")


def check_static_result(op: Any) -> None:
    """Checks that every result has a static shape."""
    for result in op.results:
        if not is_static(result.type):
            raise Violation(f"must have a result of static shape, got {result.type}")


def shape_of(type_: Any) -> Shape:
    """Returns the shape that the sharding of a value of this type applies to: for a tuple, that of its only element."""
    if not isinstance(type_, ir.TupleType):
        return plain_shape(type_)
    if type_.num_types != 1:
        raise Violation(f"a sharding of a tuple requires a tuple of size 1, got {type_}")
    return plain_shape(type_.get_type(0))


def plain_shape(type_: Any) -> Shape:
    """Returns the sizes of a ranked shaped type, None for a dynamic size, or the reason for a missing shape."""
    if not isinstance(type_, ir.ShapedType):
        return NoShape.NOT_SHAPED
    if not type_.has_rank:
        return NoShape.UNRANKED
    return tuple(None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank))
