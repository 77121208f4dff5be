// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What is in the regions of operations, as numbers to compare.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <vector>

namespace mlir_shard {

class RegionContents {
public:
  explicit RegionContents(const ModuleArrays &arrays);

  // Adds what is in the regions of an operation to a key: signatures, and operands by where in there they are defined,
  // or by their numbers for values from around the operation.
  void add(std::int32_t op, std::vector<std::int32_t> &key) const;

  std::vector<std::int32_t> ends; // Where what is inside each operation ends.

private:
  const ModuleArrays &arrays;
};

} // namespace mlir_shard
