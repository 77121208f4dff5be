// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The contents of the regions of operations, encoded as numbers that can be compared.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <vector>

namespace mlir_shard {

class RegionContents {
public:
  explicit RegionContents(const ModuleArrays &arrays);

  // Adds the contents of the regions of an operation to a key: the signatures of the operations, and their operands,
  // which are numbered by definition if they are defined in the regions, or by value number otherwise.
  void add(std::int32_t op, std::vector<std::int32_t> &key) const;

  std::vector<std::int32_t> ends; // The end of the operations inside each operation.

private:
  const ModuleArrays &arrays;
};

} // namespace mlir_shard
