# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of StableHLO that have no sharding rule of their own, as nothing goes from operand to result by dimension."""

from __future__ import annotations

from mlir_shard.rules.without_rule import without_rule

without_rule(
    "stablehlo.constant",
    "stablehlo.iota",
    "stablehlo.partition_id",
    "stablehlo.replica_id",
    because="it has no operand: its users decide",
)
without_rule(
    "stablehlo.case",
    "stablehlo.optimization_barrier",
    "stablehlo.return",
    "stablehlo.while",
    because="shardings go through it along its data flow edges",
)
without_rule(
    "stablehlo.after_all",
    "stablehlo.create_token",
    "stablehlo.get_tuple_element",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.recv",
    "stablehlo.send",
    "stablehlo.tuple",
    because="its tensors come from elsewhere or go there, or are in a tuple",
)
