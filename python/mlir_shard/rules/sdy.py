# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of sdy: a constraint shards like an elementwise op, all others have ways of their own."""

from __future__ import annotations

from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.without_rule import without_rule

register_elementwise("sdy.sharding_constraint")

without_rule(
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.manual_computation",
    "sdy.named_computation",
    "sdy.propagation_barrier",
    "sdy.return",
    "sdy.sharding_group",
    because="propagation knows how shardings go through it",
)
without_rule(
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.reshard",
    "sdy.sharded_to_unreduced",
    because="it changes the sharding of its operand to the one it says",
)
without_rule("sdy.constant", "sdy.mesh", because="it has no operand")
