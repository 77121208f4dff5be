// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The operations that are inserted around an operation to reshard its operands and results.
#pragma once

#include "arrays/made_ops.h"
#include "ir/capi.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

struct Insertion {
  // An inserted operation with one operand and a result of the same type.
  struct Made {
    std::int32_t value; // The number of the operand or result that it reshards.
    std::string name;
    std::vector<std::pair<std::string, MlirAttribute>> attributes;
  };

  std::vector<Made> before; // Of operands.
  std::vector<Made> behind; // Of results, in order; each takes the result of the previous one for the same value.
  std::vector<std::pair<std::string, MlirAttribute>> attributes; // Attributes to set on the operation itself.
  std::vector<std::pair<std::int32_t, std::int32_t>> numbers;    // The numbers of results, as their users see them.

  // Inserts the operations around `op` and adds them to `made`.
  void insertAround(const Capi &capi, MlirOperation op, MadeOps &made) const;
};

} // namespace mlir_shard
