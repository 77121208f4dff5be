# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations with a body: manual computations, which are local in it, and named computations, which are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects.verifiers.attributes import optional, required
from mlir_shard.dialects.verifiers.sharding import check_shardings
from mlir_shard.dialects.verifiers.symbols import bound_manual_axes, mesh_lookup
from mlir_shard.dialects.verifiers.types import shape_of
from mlir_shard.dialects.verifiers.violation import Violation, require
from mlir_shard.host import ir
from mlir_shard.sharding import ManualAxes, TensorShardingPerValue
from mlir_shard.sharding.verify import check_manual_axes, check_manual_values


def check_body(op: Any) -> None:
    """The operation has one region, of one block that ends with sdy.return."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        blocks = [len(region.blocks) for region in op.regions]
        raise Violation(f"needs one region with one block, got {len(blocks)} regions with {sum(blocks)} blocks")
    last = _last_op(op)
    if last is None or last.name != "sdy.return":
        end = "nothing" if last is None else f"'{last.name}'"
        raise Violation(f"has a body that ends with {end}, but it has to end with 'sdy.return'")


def _last_op(op: Any) -> Any | None:
    operations = op.regions[0].blocks[0].operations
    count = len(operations)
    return operations[count - 1].operation if count else None


def _argument_types(op: Any) -> list[Any]:
    return [argument.type for argument in op.regions[0].blocks[0].arguments]


def _returned_types(op: Any) -> list[Any]:
    terminator = _last_op(op)
    return [] if terminator is None else [operand.type for operand in terminator.operands]


def check_manual_computation(op: Any) -> None:
    """In and out shardings fit the operands and results and make the types of the body, along different axes."""
    manual = required(op, "manual_axes", ManualAxes)
    ins = required(op, "in_shardings", TensorShardingPerValue)
    outs = required(op, "out_shardings", TensorShardingPerValue)
    bound = bound_manual_axes(op)
    operands, results = [value.type for value in op.operands], [value.type for value in op.results]
    for kind, shardings, whole, local in (
        ("operand", ins, operands, _argument_types(op)),
        ("result", outs, results, _returned_types(op)),
    ):
        require(
            check_manual_values(
                shardings,
                manual,
                mesh_lookup(op),
                [shape_of(type_) for type_ in whole],
                [shape_of(type_) for type_ in local],
                kind=kind,
                manual_axes=bound,
            )
        )
        _check_same_elements(kind, whole, local)
    require(check_manual_axes(manual, ins, outs, mesh_lookup(op), manual_axes=bound))


def _check_same_elements(kind: str, whole: Sequence[Any], local: Sequence[Any]) -> None:
    for index, (outside, inside) in enumerate(zip(whole, local, strict=True)):
        if not _differ_in_shape_only(outside, inside):
            raise Violation(
                f"{kind} {index} is {outside}, so its counterpart in the body has to be so too but for the shape, "
                f"got {inside}"
            )


def _differ_in_shape_only(one: Any, other: Any) -> bool:
    if isinstance(one, ir.RankedTensorType) and isinstance(other, ir.RankedTensorType):
        return one.element_type == other.element_type
    return one == other


def check_named_computation(op: Any) -> None:
    """The body takes the operands' types and returns the results', and in and out shardings fit them."""
    operands, results = [value.type for value in op.operands], [value.type for value in op.results]
    _check_same_types("operand", operands, "takes", _argument_types(op))
    _check_same_types("result", results, "returns", _returned_types(op))
    for name, types, kind in (("in_shardings", operands, "operand"), ("out_shardings", results, "result")):
        shardings = optional(op, name, TensorShardingPerValue)
        if shardings is not None:
            check_shardings(shardings, types, op, kind)


def _check_same_types(kind: str, outer: Sequence[Any], verb: str, inner: Sequence[Any]) -> None:
    if len(outer) != len(inner):
        raise Violation(f"has {len(outer)} {kind}s, but its body {verb} {len(inner)}: it has to be as many")
    for index, (outside, inside) in enumerate(zip(outer, inner, strict=True)):
        if outside != inside:
            raise Violation(f"{kind} {index} is {outside}, so the body has to {verb[:-1]} that type, got {inside}")
