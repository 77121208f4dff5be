# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of arith: all of its ops are elementwise on tensors, but for the constant, which has no operand."""

from __future__ import annotations

from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.without_rule import without_rule

register_elementwise("arith.*")
without_rule("arith.constant", because="it has no operand: its users decide")
