// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/size_pattern.h"

#include "ir/signatures.h"

#include <algorithm>
#include <cstdint>

namespace mlir_shard {

namespace {

// Returns the number of `size`, counted from 1 in the order in which the sizes in `met` were found; appends a new size.
std::intptr_t numberOf(std::int64_t size, std::vector<std::int64_t> &met) {
  const auto found = std::find(met.begin(), met.end(), size);
  const auto number = static_cast<std::intptr_t>(found - met.begin()) + 1;
  if (found == met.end())
    met.push_back(size);
  return number;
}

// Returns the number of elements; -1 if a dimension is dynamic or the number overflows.
std::int64_t elementCount(const Capi &capi, MlirType tensor) {
  std::int64_t count = 1;
  for (std::int64_t dim = 0, rank = capi.mlirShapedTypeGetRank(tensor); dim < rank; ++dim)
    if (capi.mlirShapedTypeIsDynamicDim(tensor, dim) ||
        __builtin_mul_overflow(count, capi.mlirShapedTypeGetDimSize(tensor, dim), &count))
      return -1;
  return count;
}

} // namespace

bool appendSizePattern(const Capi &capi, const std::vector<MlirType> &types, std::vector<const void *> &key) {
  const std::size_t begin = key.size();
  std::vector<std::int64_t> met{1}, counts;
  for (MlirType type : types) {
    if (!type || !capi.mlirTypeIsARankedTensor(type)) {
      key.push_back(type.pointer);
      continue;
    }
    counts.push_back(elementCount(capi, type));
    if (counts.back() < 0) {
      key.resize(begin);
      return false;
    }
    const std::int64_t rank = capi.mlirShapedTypeGetRank(type);
    key.insert(key.end(), {capi.mlirShapedTypeGetElementType(type).pointer,
                           capi.mlirRankedTensorTypeGetEncoding(type).pointer,
                           asPointer(rank)});
    for (std::int64_t dim = 0; dim < rank; ++dim)
      key.push_back(asPointer(numberOf(capi.mlirShapedTypeGetDimSize(type, dim), met)));
  }
  std::vector<std::int64_t> sorted = counts;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (std::int64_t count : counts)
    key.push_back(asPointer(std::lower_bound(sorted.begin(), sorted.end(), count) - sorted.begin()));
  return true;
}

std::optional<std::vector<std::int64_t>> staticSizes(const Capi &capi, const std::vector<MlirType> &types) {
  std::vector<std::int64_t> sizes;
  for (MlirType type : types) {
    if (!type || !capi.mlirTypeIsAShaped(type))
      continue;
    if (!capi.mlirShapedTypeHasRank(type) || !capi.mlirShapedTypeHasStaticShape(type))
      return std::nullopt;
    if (!capi.mlirTypeIsARankedTensor(type))
      continue;
    for (std::int64_t dim = 0, rank = capi.mlirShapedTypeGetRank(type); dim < rank; ++dim)
      sizes.push_back(capi.mlirShapedTypeGetDimSize(type, dim));
  }
  return sizes;
}

} // namespace mlir_shard
