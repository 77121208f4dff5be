# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries that compiled programs call: `blas`, `narrow_gemm` and `vector_math` provide their symbols at run time.

`array_calls` calls Python functions on arrays, which `fourier` and `lapack` implement.
"""
