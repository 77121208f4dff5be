# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs random StableHLO programs through this project's passes and through those of the C++ Shardy in jaxlib."""
