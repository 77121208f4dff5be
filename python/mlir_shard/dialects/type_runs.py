# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attributes by which an operation with variadic operands or results says where its types change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS, lengths


def type_run_attributes(
    operands: Sequence[Any] | None = None, result_types: Sequence[Any] | None = None, context: Any = None
) -> dict[str, Any]:
    """The attributes to build an operation with, for its variadic operands and the types of its variadic results.

    Raises TooManyRuns.
    """
    found = {}
    if operands is not None:
        found[OPERAND_LENGTHS] = length_attribute([value.type for value in operands], context)
    if result_types is not None:
        found[RESULT_LENGTHS] = length_attribute(result_types, context)
    return found


def length_attribute(types: Sequence[Any], context: Any = None) -> Any:
    """The attribute with the lengths of the runs of equal types among those of operands, or of results.

    Raises TooManyRuns.
    """
    return ir.DenseI32ArrayAttr.get(lengths(types), context)
