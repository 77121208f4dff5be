// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Hashes of 64 bits, combined from a sequence of numbers.
#pragma once

#include <cstdint>

namespace mlir_shard {

// Combines a number with a hash.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}
inline std::uint64_t mixed(std::uint64_t hash, const void *pointer) {
  return mixed(hash, reinterpret_cast<std::uintptr_t>(pointer));
}

} // namespace mlir_shard
