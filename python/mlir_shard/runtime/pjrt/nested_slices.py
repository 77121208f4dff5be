# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prevents XLA from merging a dynamic slice with a dynamic slice of its result.

XLA's simplifier merges two dynamic slices into one whose start is the sum of their starts. But each start is clamped to
the bounds of its own operand, so the result is wrong if one is out of bounds. XLA also turns gathers and scatters with
a single index into dynamic slices.
"""

from __future__ import annotations

import math
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.op_names import op_names

_SLICE, _GATHER = "stablehlo.dynamic_slice", "stablehlo.gather"
# Operations that may slice their operands, also in their regions or in the function that they call.
_INDEXING = frozenset((*op_names("stablehlo", "gather scatter while"), "func.call"))
_RETURNS = frozenset(("stablehlo.return", "func.return"))
_VIEWS = frozenset(op_names("stablehlo", "reshape transpose"))


def separate_slices(module: Any, entry: str) -> None:
    """Inserts a barrier after each dynamic slice that is, or may be, sliced again.

    Args:
        module: the module, in StableHLO.
        entry: the function whose results are the results of the program.
    """
    for op in operations_named(module, _SLICE, _GATHER):
        result = op.results[0]
        if (op.name == _SLICE or _has_one_index(op)) and _is_sliced(result, op.parent, entry):
            with ir.InsertionPoint.after(op), op.location:
                barrier = ir.Operation.create("stablehlo.optimization_barrier", [result.type], [result])
            result.replace_all_uses_except(barrier.results[0], [barrier])


def _has_one_index(gather: Any) -> bool:
    result = gather.results[0].type
    return math.prod(result.shape) == math.prod(gather.attributes["slice_sizes"])


def _is_sliced(value: Any, parent: Any, entry: str) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name in _VIEWS:
            is_sliced = _is_sliced(user.results[0], parent, entry)
        elif user.name == _SLICE:
            is_sliced = use.operand_number == 0
        elif user.name in _RETURNS:
            is_sliced = not (parent.name == "func.func" and parent.attributes["sym_name"].value == entry)
        else:
            is_sliced = user.name in _INDEXING or user.parent != parent
        if is_sliced:
            return True
    return False
