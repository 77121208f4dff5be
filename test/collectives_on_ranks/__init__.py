# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every collective of upstream's shard dialect and of StableHLO on MPI ranks, and compares it with NumPy."""
