# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attributes of operations with variadic operands or results that give the lengths of runs of equal types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS, lengths


def type_run_attributes(
    operands: Sequence[Any] | None = None, result_types: Sequence[Any] | None = None, context: Any = None
) -> dict[str, Any]:
    """Returns the attributes to build an operation with, for its variadic operands and variadic result types.

    Raises TooManyRuns if the types change too often.
    """
    found = {}
    if operands is not None:
        found[OPERAND_LENGTHS] = length_attribute([value.type for value in operands], context)
    if result_types is not None:
        found[RESULT_LENGTHS] = length_attribute(result_types, context)
    return found


def length_attribute(types: Sequence[Any], context: Any = None) -> Any:
    """Returns the attribute with the lengths of the runs of equal types among the types of operands or results.

    Raises TooManyRuns if the types change too often.
    """
    return ir.DenseI32ArrayAttr.get(lengths(types), context)
