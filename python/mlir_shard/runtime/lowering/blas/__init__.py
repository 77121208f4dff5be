# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions as calls of BLAS, and of functions of the native core for types that BLAS does not have.

`contractions` finds them, `arithmetic` decides in which types they are computed and by what, `gemm_plan` which calls
make one, and `blas_calls` writes them.
"""
