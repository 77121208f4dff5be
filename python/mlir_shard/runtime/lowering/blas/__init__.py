# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of contractions to calls of BLAS, and of functions of the native core for types that BLAS lacks.

`contractions` finds them, `arithmetic` selects the types and functions that compute them, `gemm_plan` selects the
calls, and `blas_calls` emits these.
"""
