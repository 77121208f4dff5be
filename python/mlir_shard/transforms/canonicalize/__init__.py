# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifications of sdy operations, a file for each family of them, and `canonicalize`, which applies them."""
