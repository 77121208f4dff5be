# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of complex: elementwise as arith, though its ops are defined on numbers so far, not on tensors."""

from __future__ import annotations

from mlir_shard.rules.elementwise import register_elementwise
from mlir_shard.rules.without_rule import without_rule

register_elementwise("complex.*")
without_rule("complex.constant", because="it has no operand: its users decide")
