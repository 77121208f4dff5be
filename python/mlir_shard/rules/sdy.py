# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of sdy: a constraint lets shardings through like an elementwise op."""

from __future__ import annotations

from mlir_shard.rules.elementwise import register_elementwise

register_elementwise("sdy.sharding_constraint")
