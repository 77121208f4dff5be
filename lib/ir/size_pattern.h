// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The types of an operation without the sizes of their dimensions.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir_shard {

// Appends to `key` the types, which are separated by null pointers, without sizes; only which dimensions have size 1,
// which dimensions have equal sizes, and the order of tensors by number of elements are kept. Returns false and leaves
// `key` unchanged if a tensor has a dynamic dimension or more elements than 64 bits can count.
bool appendSizePattern(const Capi &capi, const std::vector<MlirType> &types, std::vector<const void *> &key);

// Returns the sizes of the dimensions of the tensors among the types in order; nullopt if a type has a dynamic
// dimension or no rank. Null pointers separate the types.
std::optional<std::vector<std::int64_t>> staticSizes(const Capi &capi, const std::vector<MlirType> &types);

} // namespace mlir_shard
