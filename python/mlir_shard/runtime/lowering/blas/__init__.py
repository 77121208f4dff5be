# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions as calls of BLAS.

`contractions` finds them, `gemm_plan` decides which calls make one, and `blas_calls` writes them.
"""
