# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that are fast, and memory that is small.

On tensors: `accumulators` sums narrow floats in f32, `destinations` gives each op its own memory. On buffers:
`lifetimes` frees early; `merged_loops` makes one loop of several; `loop_order` orders and tiles loops so that LLVM
vectorizes them, with `transposes` for what two orders share; `unrolling` says which LLVM may unroll; `math_calls` calls
functions that LLVM has on vectors.
"""
