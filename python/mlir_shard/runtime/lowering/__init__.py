# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of one program to the LLVM dialect.

Read `llvm` first, which has the pipelines. `stablehlo_ops`, `linear_algebra` and `element_loops` lower what the host
does not; `contractions`, `gemm_plan` and `blas_calls` make calls of BLAS; `destinations`, `lifetimes`, `accumulators`,
`loop_order`, `transposes` and `math_calls` make loops fast and memory small; `floats`, `generic_operations` and
`external_symbols` correct what the host leaves.
"""
