// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Products of matrices of narrow elements for local programs, by instructions of AVX-512 that add up several products at
// once: OpenBLAS as SciPy builds it has no such kernels. Blocks of the operands are packed as by Goto and van de Geijn,
// "Anatomy of High-Performance Matrix Multiplication" (2008).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

// The functions that this CPU can run, by the symbols under which programs call them. All are
//
//   void (int32 aIsTransposed, int32 bIsTransposed, int32 m, int32 n, int32 k, const T *a, int32 aLeading, const T *b,
//         int32 bLeading, int32 adds, R *c, int32 cLeading, int32 threads)
//
// and compute `c = a * b`, or where `adds` is not 0 `c += a * b`, with at most so many threads. Matrices are row-major,
// those that are transposed in memory column-major, and `leading` elements are from one row, or column, to the next.
//
// - narrow_gemm_bf16: T is bf16 and R f32. Each product is exact and each sum rounded to nearest even; numbers of less
//   than 2^-126 count as zero.
// - narrow_gemm_i8: T is i8 and R i32, modulo 2^32.
std::vector<std::pair<std::string, std::uintptr_t>> narrowGemms();

} // namespace mlir_shard
