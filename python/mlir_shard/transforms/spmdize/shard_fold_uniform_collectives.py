# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives of tensors that hold one constant all over: every device can make the result itself."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.canonicalize.pattern import defining_op

_linalg, _tensor = dialect("linalg"), dialect("tensor")
_MOVING = ("shard.all_gather", "shard.all_slice", "shard.all_to_all", "stablehlo.all_gather", "stablehlo.all_to_all")
_CONSTANTS = ("arith.constant", "stablehlo.constant")


@register
class FoldUniformCollectives(Pass):
    """Makes the result of a collective that only moves elements anew where its operand is an empty tensor, or filled
    with one constant: no device has to receive what it knows. What is left without use is removed."""

    name = "shard-fold-uniform-collectives"
    anchor = "builtin.module"
    summary = "Folds collectives of tensors that hold one constant"

    def run(self, op: Any) -> bool:
        is_changed = False
        for collective in operations_named(op, *_MOVING):
            is_changed |= _fold(collective)
        return is_changed


def _fold(collective: Any) -> bool:
    if len(collective.results) > 1 or not collective.results[0].type.has_static_shape:
        return False
    with ir.InsertionPoint(collective), collective.location:
        made = uniform(collective.operands[0], collective.results[0].type)
    if made is None:
        return False
    maker = collective.operands[0].owner.operation
    collective.results[0].replace_all_uses_with(made)
    collective.erase()
    if not list(maker.results[0].uses):
        maker.erase()
    return True


def uniform(value: Any, type_: Any) -> Any | None:
    """What a value holds all over, in another type, built here; None where it is not known to be one."""
    if defining_op(value, "tensor.empty") is not None:
        return _tensor.EmptyOp(type_.shape, type_.element_type).result
    fill = defining_op(value, "linalg.fill")
    if fill is not None:
        scalar = fill.operands[0]
        is_constant = defining_op(scalar, "arith.constant") is not None
        return _linalg.fill(scalar, outs=[_tensor.EmptyOp(type_.shape, type_.element_type)]) if is_constant else None
    for name in _CONSTANTS:
        constant = defining_op(value, name)
        elements = None if constant is None else constant.attributes["value"]
        if isinstance(elements, ir.DenseElementsAttr) and elements.is_splat:
            same = ir.DenseElementsAttr.get_splat(type_, elements.get_splat_value())
            return ir.Operation.create(name, [type_], attributes={"value": same}).result
    return None
