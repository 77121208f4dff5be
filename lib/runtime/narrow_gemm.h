// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Products of matrices of narrow elements for local programs, by AVX-512 instructions that add up several products at
// once: OpenBLAS as built by SciPy has no such kernels. Blocks of the operands are packed as described by Goto and van
// de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

// Returns the functions that this CPU can run, by the symbols under which programs call them. Their type is
//
//   void (int32 aIsTransposed, int32 bIsTransposed, int32 m, int32 n, int32 k, const T *a, int32 aLeading, const T *b,
//         int32 bLeading, int32 adds, R *c, int32 cLeading, int32 threads)
//
// They compute `c = a * b`, or `c += a * b` if `adds` is not 0, with at most `threads` threads. Matrices are row-major,
// or column-major if they are transposed, and consecutive rows, or columns, begin `leading` elements apart.
//
// - narrow_gemm_bf16: T is bf16 and R f32. Each product is exact and each sum rounded to nearest even; numbers smaller
//   than 2^-126 count as zero.
// - narrow_gemm_i8: T is i8 and R i32, modulo 2^32.
std::vector<std::pair<std::string, std::uintptr_t>> narrowGemms();

} // namespace mlir_shard
