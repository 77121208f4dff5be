# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules and lowerings of a custom call and of a composite."""

from typing import Any

from mlir_shard import interfaces
from mlir_shard.host import ir

interfaces.sharding_rule("stablehlo.custom_call:dispatch", text="token expert, token d -> expert d")
interfaces.reduces_with("sum", "stablehlo.custom_call:dispatch")
interfaces.sharding_rule("stablehlo.composite:my.square", text="... -> ...")


@interfaces.lowering("stablehlo.custom_call:dispatch")
def dispatch(op: Any) -> Any:
    numbers = ir.Attribute.parse("#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>")
    types = [op.results[0].type]
    return ir.Operation.create("stablehlo.dot_general", types, list(op.operands), {"dot_dimension_numbers": numbers})


@interfaces.lowering("stablehlo.composite:my.square")
def square(op: Any) -> Any:
    (operand,) = op.operands
    return ir.Operation.create("stablehlo.multiply", [operand.type], [operand, operand])
