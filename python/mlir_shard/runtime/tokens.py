# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's tokens, where operations are run in the order in which they stand: truth values that nobody reads."""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime.boundary import is_token

_arith = host.dialect("arith")

_MAKING = frozenset({"stablehlo.after_all", "stablehlo.create_token"})


def to_values(module: Any) -> None:
    """Gives every token in a module another type, in place, and makes constants of the operations that make them."""
    type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1, module.context))
    making: list[Any] = []

    def visit(op: Any) -> Any:
        values = [*op.results, *(one for region in op.regions for block in region.blocks for one in block.arguments)]
        tokens = [value for value in values if is_token(value.type)]
        for value in tokens:
            value.set_type(type_)
        if op.name in _MAKING:
            making.append(op)
        elif op.name == "func.func":
            _change_signature(op, type_)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in making:
        with ir.InsertionPoint(op), op.location:
            value = ir.DenseElementsAttr.get_splat(type_, ir.BoolAttr.get(False))
            op.results[0].replace_all_uses_with(_arith.ConstantOp(type_, value).result)
        op.erase()


def _change_signature(function: Any, type_: Any) -> None:
    signature = function.attributes["function_type"].value
    if any(map(is_token, (*signature.inputs, *signature.results))):
        inputs, results = (
            [type_ if is_token(one) else one for one in side] for side in (signature.inputs, signature.results)
        )
        changed = ir.FunctionType.get(inputs, results, function.context)
        function.attributes["function_type"] = ir.TypeAttr.get(changed, function.context)
