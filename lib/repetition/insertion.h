// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The operations inserted around one to reshard its operands and results.
#pragma once

#include "arrays/made_ops.h"
#include "ir/capi.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

struct Insertion {
  // An operation of one operand and a result of its type.
  struct Made {
    std::int32_t value; // The number of the operand or result that it takes.
    std::string name;
    std::vector<std::pair<std::string, MlirAttribute>> attributes;
  };

  std::vector<Made> before; // Of operands.
  std::vector<Made> behind; // Of results, in order; each takes what the one before it for the same result has made.
  std::vector<std::pair<std::string, MlirAttribute>> attributes; // That the operation itself gets.
  std::vector<std::pair<std::int32_t, std::int32_t>> numbers;    // Of results, as those that use them see them.

  // Inserts them; `made` gets them.
  void insertAround(const Capi &capi, MlirOperation op, MadeOps &made) const;
};

} // namespace mlir_shard
