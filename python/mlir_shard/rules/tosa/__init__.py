# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules of TOSA, a file for each family of ops, registered on import of this package.

Operands of type `!tosa.shape` are sizes and have no factors. Zero points are tensors of one element.
"""

from __future__ import annotations

from mlir_shard.ir.op_names import op_names
from mlir_shard.rules.registry import without_rule
from mlir_shard.rules.tosa import compute, gathers, layout, windows

__all__ = ["compute", "gathers", "layout", "windows"]

without_rule("tosa.const", because="it has no operands: its users determine its sharding")
without_rule(
    *op_names(
        "tosa",
        "add_shape assert_equal_shape concat_shape const_shape dim div_ceil_shape div_floor_shape exp2_shape "
        "log2_ceil_shape log2_floor_shape max_shape min_shape mod_shape mul_shape slice_shape sub_shape",
    ),
    because="it computes sizes, which have no dimension to shard",
)
without_rule("tosa.cond_if", "tosa.while_loop", because="values flow through its regions, which no rule describes")
without_rule("tosa.custom", because="its semantics are not known: set a rule in its `sdy.sharding_rule`")
without_rule(
    *op_names("tosa", "variable variable_read variable_write"),
    because="it declares, reads or writes a variable, and does not relate tensors",
)
without_rule("tosa.yield", because="it is a terminator")
