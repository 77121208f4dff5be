# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules of ops that do the same to each slice of their operands, which is whole: sorts, transforms."""

from __future__ import annotations

from mlir_shard.rules.partition import partition_rule, set_result_types

# What there is beyond a tensor is a slice of its own.
partition_rule(
    "chlo.top_k",
    "stablehlo.bitcast_convert",
    "stablehlo.fft",
    "stablehlo.sort",
    allows_uneven=True,
)(set_result_types)
# Of a matrix that is none they have no result; no factor of theirs is of anything else.
partition_rule("stablehlo.cholesky", "stablehlo.triangular_solve")(set_result_types)
