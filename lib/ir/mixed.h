// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Hashes of 64 bits, made of one number after the other.
#pragma once

#include <cstdint>

namespace mlir_shard {

// Mixes a number into a hash.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t number) {
  hash = (hash ^ number) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}
inline std::uint64_t mixed(std::uint64_t hash, const void *pointer) {
  return mixed(hash, reinterpret_cast<std::uintptr_t>(pointer));
}

} // namespace mlir_shard
