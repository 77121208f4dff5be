// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/narrow_gemm.h"

// Older compilers do not support the instructions.
#if defined(__x86_64__) && (defined(__clang__) ? __clang_major__ >= 10 : defined(__GNUC__) && __GNUC__ >= 11)
#define MLIR_SHARD_NARROW_GEMM

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#endif

namespace mlir_shard {

#ifdef MLIR_SHARD_NARROW_GEMM

// Compilers use the instructions of BF16 and VNNI only through intrinsics, so the other code runs on either kind of
// CPU.
#define FOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512bf16,avx512vnni")))

namespace {

// 32 bits: the elements of one row of `a`, or of one column of `b`, that an instruction multiplies and adds up at once.
// Packed operands consist of lanes, which the code below counts; the last lanes are padded with zeros.
using Lane = std::int32_t;
using Lanes = __m512i;

constexpr int LANES = 16; // Lanes of a register.
// With two registers of columns, 24 of the 32 registers hold sums.
constexpr int TILE_ROWS = 12, TILE_VECTORS = 2;
constexpr int TILE_COLUMNS = TILE_VECTORS * LANES;
// The sizes of the blocks that are multiplied at once, in lanes: TILE_COLUMNS columns of DEPTH stay in the first cache,
// and BLOCK_ROWS rows in the second.
constexpr int DEPTH = 256, BLOCK_ROWS = 384;
// The smallest number of products for which starting a thread pays off.
constexpr std::int64_t PRODUCTS_OF_THREAD = std::int64_t{1} << 22;

// Returns a mask of the lowest `bytes` of 64 bytes.
inline __mmask64 bytesMask(std::int64_t bytes) {
  return bytes >= 64 ? ~__mmask64{0} : bytes <= 0 ? 0 : (__mmask64{1} << bytes) - 1;
}

// Transposes 16 rows of 16 lanes.
FOR_AVX512 inline void transpose(Lanes (&rows)[LANES]) {
  Lanes other[LANES];
  for (int i = 0; i < LANES; i += 2) {
    other[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    other[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < LANES; i += 4)
    for (int j = 0; j < 2; ++j) {
      rows[i + 2 * j] = _mm512_unpacklo_epi64(other[i + j], other[i + j + 2]);
      rows[i + 2 * j + 1] = _mm512_unpackhi_epi64(other[i + j], other[i + j + 2]);
    }
  // Row 4 i + j contains the columns j, j + 4, j + 8 and j + 12 of the rows from 4 i on.
  for (int j = 0; j < 4; ++j) {
    const Lanes even = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0x88);
    const Lanes odd = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0xdd);
    const Lanes evenEnd = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0x88);
    const Lanes oddEnd = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0xdd);
    other[j] = _mm512_shuffle_i32x4(even, evenEnd, 0x88);
    other[4 + j] = _mm512_shuffle_i32x4(odd, oddEnd, 0x88);
    other[8 + j] = _mm512_shuffle_i32x4(even, evenEnd, 0xdd);
    other[12 + j] = _mm512_shuffle_i32x4(odd, oddEnd, 0xdd);
  }
  for (int i = 0; i < LANES; ++i)
    rows[i] = other[i];
}

// Products of bf16 in f32.
struct Bf16 {
  using Result = float;
  using Sums = __m512;
  static constexpr int BYTES = 2;
  static constexpr Lane FLIPPED = 0;

  FOR_AVX512 static Sums zero() { return _mm512_setzero_ps(); }
  FOR_AVX512 static Sums add(Sums sums, Lanes a, Lanes b) { return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b); }
  FOR_AVX512 static Sums load(__mmask16 mask, const float *from) { return _mm512_maskz_loadu_ps(mask, from); }
  FOR_AVX512 static Sums plus(Sums a, Sums b) { return _mm512_add_ps(a, b); }
  FOR_AVX512 static void store(__mmask16 mask, float *to, Sums sums) { _mm512_mask_storeu_ps(to, mask, sums); }
  // Returns the lanes of 16 columns, of which each row contains one element.
  FOR_AVX512 static Lanes lanesOf(const Lanes (&rows)[2]) {
    const Lanes low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(rows[0]));
    const Lanes high = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(rows[1]));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
};

// Products of i8 in i32. The instruction takes unsigned elements of `a`: packing adds 128 to them, and the initial sums
// subtract the resulting excess.
struct I8 {
  using Result = std::int32_t;
  // The elements of Lanes have 64 bits, with which GCC 12 would keep sums in memory.
  using Sums __attribute__((vector_size(64))) = std::int32_t;
  static constexpr int BYTES = 1;
  static constexpr Lane FLIPPED = static_cast<Lane>(0x80808080u);

  FOR_AVX512 static Sums zero() { return Sums{}; }
  FOR_AVX512 static Sums add(Sums sums, Lanes a, Lanes b) { return (Sums)_mm512_dpbusd_epi32((Lanes)sums, a, b); }
  FOR_AVX512 static Sums load(__mmask16 mask, const std::int32_t *from) {
    return (Sums)_mm512_maskz_loadu_epi32(mask, from);
  }
  FOR_AVX512 static Sums plus(Sums a, Sums b) { return (Sums)_mm512_add_epi32((Lanes)a, (Lanes)b); }
  FOR_AVX512 static Sums minus(Sums a) { return (Sums)_mm512_sub_epi32(_mm512_setzero_si512(), (Lanes)a); }
  FOR_AVX512 static void store(__mmask16 mask, std::int32_t *to, Sums sums) {
    _mm512_mask_storeu_epi32(to, mask, (Lanes)sums);
  }
  FOR_AVX512 static Lanes lanesOf(const Lanes (&rows)[4]) {
    const Lanes first = wide(rows[0]), second = _mm512_slli_epi32(wide(rows[1]), 8);
    const Lanes third = _mm512_slli_epi32(wide(rows[2]), 16), fourth = _mm512_slli_epi32(wide(rows[3]), 24);
    return _mm512_or_si512(_mm512_or_si512(first, second), _mm512_or_si512(third, fourth));
  }

private:
  FOR_AVX512 static Lanes wide(Lanes row) { return _mm512_cvtepu8_epi32(_mm512_castsi512_si128(row)); }
};

// A matrix in memory, row-major or column-major.
struct Matrix {
  const void *elements;
  std::int64_t leading;
  bool isTransposed;
};

// A part of an operand: some rows of `a` or columns of `b`, and the elements of each that are multiplied.
struct Part {
  const char *elements;
  std::int64_t leading;    // In bytes.
  bool areSidesContiguous; // If false, the elements of a row of `a`, or of a column of `b`, are contiguous.
  std::int64_t sides, depth;
};

template <typename Kind> class Gemm {
  using Result = typename Kind::Result;
  using Sums = typename Kind::Sums;
  static constexpr int PER_LANE = 4 / Kind::BYTES;

public:
  Gemm(Matrix a, Matrix b, std::int64_t k, bool adds, Result *c, std::int64_t cLeading)
      : a(a), b(b), k(k), adds(adds), c(c), cLeading(cLeading) {}

  // Computes a range of rows and columns.
  FOR_AVX512 void compute(std::int64_t firstRow, std::int64_t endRow, std::int64_t firstColumn,
                          std::int64_t endColumn) const {
    const std::int64_t lanes = lanesFor(k), blocks = std::max<std::int64_t>((lanes + DEPTH - 1) / DEPTH, 1);
    const std::int64_t most = (lanes + blocks - 1) / blocks, rows = std::min<std::int64_t>(endRow - firstRow, BLOCK_ROWS);
    // A store of 16 lanes for 12 packed ones writes past the end.
    const std::unique_ptr<Lane[]> aPacked(new Lane[(rows + TILE_ROWS) * most + LANES]);
    alignas(64) Lane bPacked[DEPTH * TILE_COLUMNS];
    for (std::int64_t lane = 0; lane < lanes; lane += most) {
      const std::int64_t depth = std::min(most, lanes - lane), first = lane * PER_LANE;
      const std::int64_t elements = std::min(depth * PER_LANE, k - first);
      for (std::int64_t row = firstRow; row < endRow; row += BLOCK_ROWS) {
        const std::int64_t rowsOfBlock = std::min<std::int64_t>(BLOCK_ROWS, endRow - row);
        for (std::int64_t i = 0; i < rowsOfBlock; i += TILE_ROWS)
          pack<TILE_ROWS>(part(a, a.isTransposed, row + i, rowsOfBlock - i, first, elements), Kind::FLIPPED,
                          &aPacked[i * depth]);
        for (std::int64_t column = firstColumn; column < endColumn; column += TILE_COLUMNS) {
          const std::int64_t columns = std::min<std::int64_t>(TILE_COLUMNS, endColumn - column);
          const Part part = this->part(b, !b.isTransposed, column, columns, first, elements);
          pack<TILE_COLUMNS>(part, 0, bPacked);
          computePanels(depth, aPacked.get(), bPacked, rowsOfBlock, columns, adds || lane > 0,
                        c + row * cLeading + column);
        }
      }
    }
  }

private:
  static std::int64_t lanesFor(std::int64_t elements) { return (elements + PER_LANE - 1) / PER_LANE; }

  static Part part(const Matrix &matrix, bool areSidesContiguous, std::int64_t side, std::int64_t sides,
                   std::int64_t first, std::int64_t depth) {
    const std::int64_t offset = areSidesContiguous ? first * matrix.leading + side : side * matrix.leading + first;
    return {static_cast<const char *>(matrix.elements) + offset * Kind::BYTES, matrix.leading * Kind::BYTES,
            areSidesContiguous, sides, depth};
  }

  // Packs `width` sides, with zeros for missing ones: the first lane of each, then the second, and so on. The memory
  // after the last one is overwritten.
  template <int width> FOR_AVX512 static void pack(const Part &part, Lane flipped, Lane *packed) {
    const Lanes flips = _mm512_set1_epi32(flipped);
    if (part.areSidesContiguous)
      packAcross<width>(part, flips, packed);
    else
      packAlong<width>(part, flips, packed);
  }

  template <int width> FOR_AVX512 static void packAlong(const Part &part, Lanes flips, Lane *packed) {
    const std::int64_t count = lanesFor(part.depth);
    for (int side = 0; side < width; side += LANES)
      for (std::int64_t lane = 0; lane < count; lane += LANES) {
        const char *source = part.elements + side * part.leading + lane * 4;
        const __mmask64 mask = bytesMask(part.depth * Kind::BYTES - lane * 4);
        Lanes rows[LANES];
        for (int i = 0; i < LANES; ++i) {
          const __mmask64 there = side + i < part.sides ? mask : 0;
          rows[i] = _mm512_xor_si512(flips, _mm512_maskz_loadu_epi8(there, source + i * part.leading));
        }
        transpose(rows);
        const int many = static_cast<int>(std::min<std::int64_t>(LANES, count - lane));
        for (int i = 0; i < many; ++i)
          _mm512_storeu_si512(packed + (lane + i) * width + side, rows[i]);
      }
  }

  template <int width> FOR_AVX512 static void packAcross(const Part &part, Lanes flips, Lane *packed) {
    const std::int64_t count = lanesFor(part.depth);
    for (std::int64_t lane = 0; lane < count; ++lane)
      for (int side = 0; side < width; side += LANES) {
        const __mmask64 mask = bytesMask((part.sides - side) * Kind::BYTES) & bytesMask(LANES * Kind::BYTES);
        const char *source = part.elements + lane * PER_LANE * part.leading + side * Kind::BYTES;
        Lanes rows[PER_LANE];
        for (int i = 0; i < PER_LANE; ++i)
          rows[i] = _mm512_maskz_loadu_epi8(lane * PER_LANE + i < part.depth ? mask : 0, source + i * part.leading);
        _mm512_storeu_si512(packed + lane * width + side, _mm512_xor_si512(flips, Kind::lanesOf(rows)));
      }
  }

  // The initial sums of a tile, by columns.
  struct Begin {
    Sums of[TILE_VECTORS];
  };

  FOR_AVX512 static Lanes columnsAt(const Lane *bPacked, std::int64_t lane, int vector) {
    return _mm512_load_si512(bPacked + lane * TILE_COLUMNS + vector * LANES);
  }

  // Computes all rows of a block and at most TILE_COLUMNS columns.
  FOR_AVX512 void computePanels(std::int64_t depth, const Lane *aPacked, const Lane *bPacked, std::int64_t rows,
                                std::int64_t columns, bool adds, Result *c) const {
    Begin begin;
    for (int i = 0; i < TILE_VECTORS; ++i) {
      begin.of[i] = Kind::zero();
      if constexpr (Kind::FLIPPED != 0) {
        for (std::int64_t lane = 0; lane < depth; ++lane)
          begin.of[i] = Kind::add(begin.of[i], _mm512_set1_epi32(Kind::FLIPPED), columnsAt(bPacked, lane, i));
        begin.of[i] = Kind::minus(begin.of[i]);
      }
    }
    const int vectors = static_cast<int>((columns + LANES - 1) / LANES);
    const __mmask16 mask = static_cast<__mmask16>((1u << (columns - (vectors - 1) * LANES)) - 1);
    for (std::int64_t row = 0; row < rows; row += TILE_ROWS) {
      const std::int64_t many = std::min<std::int64_t>(TILE_ROWS, rows - row);
      TILES[vectors - 1][many - 1](depth, aPacked + row * depth, bPacked, begin, adds, c + row * cLeading, cLeading, mask);
    }
  }

  template <int vectors, int rows>
  FOR_AVX512 static void computeTile(std::int64_t depth, const Lane *aPacked, const Lane *bPacked, const Begin &begin,
                                     bool adds, Result *c, std::int64_t cLeading, __mmask16 mask) {
    Sums sums[rows][vectors];
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < vectors; ++i)
        sums[row][i] = begin.of[i];
    for (std::int64_t lane = 0; lane < depth; ++lane) {
      Lanes columns[vectors];
      for (int i = 0; i < vectors; ++i)
        columns[i] = columnsAt(bPacked, lane, i);
      for (int row = 0; row < rows; ++row) {
        const Lanes all = _mm512_set1_epi32(aPacked[lane * TILE_ROWS + row]);
        for (int i = 0; i < vectors; ++i)
          sums[row][i] = Kind::add(sums[row][i], all, columns[i]);
      }
    }
#pragma GCC unroll 12
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < vectors; ++i) {
        const __mmask16 there = i == vectors - 1 ? mask : static_cast<__mmask16>(-1);
        Result *to = c + row * cLeading + i * LANES;
        Kind::store(there, to, adds ? Kind::plus(Kind::load(there, to), sums[row][i]) : sums[row][i]);
      }
  }

  using Tile = decltype(&Gemm::template computeTile<1, 1>);
  template <int vectors, std::size_t... rows>
  static constexpr std::array<Tile, TILE_ROWS> tiles(std::index_sequence<rows...>) {
    return {&Gemm::template computeTile<vectors, static_cast<int>(rows) + 1>...};
  }
  // By the numbers of vectors and rows.
  static constexpr std::array<std::array<Tile, TILE_ROWS>, TILE_VECTORS> TILES{
      tiles<1>(std::make_index_sequence<TILE_ROWS>()), tiles<2>(std::make_index_sequence<TILE_ROWS>())};

  const Matrix a, b;
  const std::int64_t k;
  const bool adds;
  Result *const c;
  const std::int64_t cLeading;
};

// Threads that are joined by the destructor.
class Threads {
public:
  ~Threads() {
    for (std::thread &one : threads)
      one.join();
  }
  // Calls a function in a new thread, or in the current one if the system cannot create a thread.
  template <typename Function> void start(const Function &function) {
    try {
      threads.emplace_back(function);
    } catch (const std::system_error &) {
      function();
    }
  }

private:
  std::vector<std::thread> threads;
};

template <typename Kind>
void gemm(std::int32_t aIsTransposed, std::int32_t bIsTransposed, std::int32_t m, std::int32_t n, std::int32_t k,
          const void *aElements, std::int32_t aLeading, const void *bElements, std::int32_t bLeading, std::int32_t adds,
          typename Kind::Result *c, std::int32_t cLeading, std::int32_t threads) noexcept {
  Matrix a{aElements, aLeading, aIsTransposed != 0}, b{bElements, bLeading, bIsTransposed != 0};
  if (n == 1 && cLeading == 1) {
    // Computes a contiguous column as a row, because a tile has more columns than rows.
    std::swap(a, b);
    std::swap(m, n);
    a.isTransposed = !a.isTransposed;
    b.isTransposed = !b.isTransposed;
  }
  const Gemm<Kind> product(a, b, k, adds != 0, c, cLeading);
  const bool splitsRows = m > n;
  const std::int64_t size = splitsRows ? m : n, unit = splitsRows ? TILE_ROWS : TILE_COLUMNS;
  const std::int64_t worth = std::int64_t{m} * n * k / PRODUCTS_OF_THREAD;
  const std::int64_t parts = std::max<std::int64_t>(std::min({std::int64_t{threads}, worth, (size + unit - 1) / unit}), 1);
  const auto compute = [&](std::int64_t part) {
    const std::int64_t units = (size + unit - 1) / unit;
    const std::int64_t begin = units * part / parts * unit, end = std::min(units * (part + 1) / parts * unit, size);
    if (splitsRows)
      product.compute(begin, end, 0, n);
    else
      product.compute(0, m, begin, end);
  };
  Threads others;
  for (std::int64_t part = 1; part < parts; ++part)
    others.start([&compute, part] { compute(part); });
  compute(0);
}

} // namespace

std::vector<std::pair<std::string, std::uintptr_t>> narrowGemms() {
  std::vector<std::pair<std::string, std::uintptr_t>> found;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw"))
    return found;
  if (__builtin_cpu_supports("avx512bf16"))
    found.emplace_back("narrow_gemm_bf16", reinterpret_cast<std::uintptr_t>(&gemm<Bf16>));
  if (__builtin_cpu_supports("avx512vnni"))
    found.emplace_back("narrow_gemm_i8", reinterpret_cast<std::uintptr_t>(&gemm<I8>));
  return found;
}

#else

std::vector<std::pair<std::string, std::uintptr_t>> narrowGemms() { return {}; }

#endif

} // namespace mlir_shard
