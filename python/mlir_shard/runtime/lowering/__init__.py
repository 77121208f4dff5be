# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of one program to the LLVM dialect.

Read `llvm` first, which has the pipelines. `stablehlo`, `tosa_ops` and `aggregated_ops` lower what the host does not;
`blas` and `array_calls` make calls of libraries; `loops` makes loops fast and memory small; `floats`,
`generic_operations`, `function_names` and `external_symbols` correct what the host leaves. `registered` has the
lowerings of users, and `lowering_process` does it all in a process of its own.
"""
