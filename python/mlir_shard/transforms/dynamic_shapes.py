# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which value around an op has a size that is known only when the program runs, for errors to name it."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir


def is_dynamic(type_: Any) -> bool:
    """Whether a type is one of shapes whose rank or sizes it does not say."""
    return isinstance(type_, ir.ShapedType) and not (type_.has_rank and type_.has_static_shape)


def dynamic_value(op: Any) -> str | None:
    """The first operand or result with a dynamic shape, by its number and type; None where there is none."""
    for kind, values in (("operand", op.operands), ("result", op.results)):
        for number, value in enumerate(values):
            if is_dynamic(value.type):
                return f"{kind} {number} has type {value.type}"
    return None
