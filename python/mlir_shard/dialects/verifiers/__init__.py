# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The invariants of operations that carry shardings: what needs an operation, its types, its parents or its uses.

What can be said of a value alone is in `mlir_shard.sharding.verify`.
"""
