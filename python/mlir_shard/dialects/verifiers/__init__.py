# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The invariants of operations with shardings that depend on the operation, its types, its parents or its uses.

The invariants of attribute values alone are in `mlir_shard.sharding.verify`.
"""
