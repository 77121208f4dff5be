# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an op is to the order of propagation: one that passes a tensor on, that broadcasts, or any other."""

from __future__ import annotations

from typing import Any

from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.transforms.propagate.value_graph import OpClass

_CLASSES = {
    "linalg.broadcast": OpClass.BROADCAST,
    "linalg.transpose": OpClass.RESHAPING,
    "sdy.propagation_barrier": OpClass.ELEMENTWISE,
    "sdy.reshard": OpClass.ELEMENTWISE,
    "stablehlo.broadcast_in_dim": OpClass.BROADCAST,
    "stablehlo.dynamic_slice": OpClass.SLICING,
    "stablehlo.dynamic_update_slice": OpClass.SLICING,
    "stablehlo.reshape": OpClass.RESHAPING,
    "stablehlo.transpose": OpClass.RESHAPING,
    "tensor.collapse_shape": OpClass.RESHAPING,
    "tensor.expand_shape": OpClass.RESHAPING,
    "tensor.reshape": OpClass.RESHAPING,
}
# Custom calls that move a tensor to other memory.
_OFFLOADING = ("MoveToDevice", "MoveToHost")


def op_class(op: Any) -> OpClass:
    """The class of an op; it depends on name, types and attributes alone."""
    name = op.name
    if name == "stablehlo.custom_call":
        moves = op.attributes["call_target_name"].value in _OFFLOADING
        return OpClass.RESHAPING if moves else OpClass.OTHER
    if name == "stablehlo.bitcast_convert":
        same = shape_of(op.operands[0].type) == shape_of(op.results[0].type)
        return OpClass.ELEMENTWISE if same else OpClass.OTHER
    return OpClass.ELEMENTWISE if is_elementwise(name) else _CLASSES.get(name, OpClass.OTHER)
