# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much a `tensor.pad` or a `tosa.pad` puts around a tensor, and what, as far as the program says so."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_BEFORE_AND_BEHIND = 2

Amounts = tuple[tuple[int, int], ...]


def padding_of(op: Any) -> Amounts | None:
    """For each dimension how many elements go before and behind it; None where that is not constant."""
    op = op.operation
    if op.name == "tensor.pad":
        low, high = list(op.attributes["static_low"]), list(op.attributes["static_high"])
        return None if _DYNAMIC in (*low, *high) else tuple(zip(low, high, strict=True))
    shape = op.operands[1].owner
    if isinstance(shape, ir.Block) or shape.name != "tosa.const_shape":
        return None
    flat = [int(one) for one in shape.attributes["values"]]
    return tuple(zip(flat[0::_BEFORE_AND_BEHIND], flat[1::_BEFORE_AND_BEHIND], strict=True))


def scalar_of_region(op: Any) -> Any | None:
    """The value from around a `tensor.pad` that its region gives for every element; None where it computes one."""
    block = op.operation.regions[0].blocks[0]
    if len(block.operations) != 1:
        return None
    value = block.operations[0].operation.operands[0]
    return None if value in list(block.arguments) else value
