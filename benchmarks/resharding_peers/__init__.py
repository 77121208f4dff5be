# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resharding by several planners, converted to the moves of `mlir_shard.resharding` and measured by the same code."""
