// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The types of an operation up to the sizes of its dimensions.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir_shard {

// Appends to `key` what the types, null pointers between them, are when sizes are left out but for what follows: which
// dimensions have size 1, which have equal sizes, and which tensor has more elements than which. Returns false, with
// `key` as it was, where a tensor has a dynamic dimension or more elements than 64 bits count.
bool appendSizePattern(const Capi &capi, const std::vector<MlirType> &types, std::vector<const void *> &key);

// Returns the sizes of the dimensions of the tensors among the types in order; nullopt if one of them has a dynamic
// dimension or no rank. There are null pointers between types.
std::optional<std::vector<std::int64_t>> staticSizes(const Capi &capi, const std::vector<MlirType> &types);

} // namespace mlir_shard
