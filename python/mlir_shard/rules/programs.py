# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of ml_program and shape: they have tensors, but none of their ops relates dimensions of several."""

from __future__ import annotations

from mlir_shard.rules.without_rule import without_rule

without_rule("ml_program.*", because="it reads or writes a global, or holds code: no two tensors are related by it")
without_rule("shape.*", because="its tensors are extents of shapes, which every device needs whole")
