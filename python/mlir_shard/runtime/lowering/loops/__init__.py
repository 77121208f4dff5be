# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimization of loops and memory.

On tensors: `accumulators` sums narrow floats in f32; `destinations` gives each op its own destination. On buffers:
`lifetimes` shortens lifetimes; `merged_loops` merges adjacent loops; `shared_loops` compiles equal loops once;
`loop_order` orders and tiles loops so that LLVM vectorizes them, with `transposes` for tiles in registers; `unrolling`
limits LLVM's unrolling; `math_calls` calls functions that have vector variants.
"""
