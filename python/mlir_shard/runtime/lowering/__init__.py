# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of a per-device program to the LLVM dialect.

Read `llvm` first, which has the pipelines. `stablehlo`, `tosa_ops` and `aggregated_ops` lower operations that the host
does not; `blas` and `array_calls` emit library calls; `loops` optimizes loops and memory; `floats`,
`generic_operations`, `function_names` and `external_symbols` work around limitations of the host. `registered` applies
the lowerings of users, and `lowering_process` runs the lowering in a separate process.
"""
