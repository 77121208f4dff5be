// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The operations that a rewrite has inserted into a program, for the verification after it.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"

#include <vector>

namespace mlir_shard {

class MadeOps {
public:
  // Adds an operation that was created or moved, or whose attributes were changed; each operation is added once.
  void add(MlirOperation op) {
    if (const std::int32_t place = places.find(op.pointer); place == PointerMap::absent || !ops[place]) {
      places.set(op.pointer, static_cast<std::int32_t>(ops.size()));
      ops.push_back(op);
    }
  }

  // Removes an operation that is about to be erased: a new operation may reuse its address.
  void leaveOut(MlirOperation op) {
    if (const std::int32_t place = places.find(op.pointer); place != PointerMap::absent)
      ops[place] = {};
  }

  std::vector<MlirOperation> all() const {
    std::vector<MlirOperation> found;
    for (const MlirOperation op : ops)
      if (op)
        found.push_back(op);
    return found;
  }

private:
  std::vector<MlirOperation> ops; // Null for removed operations.
  PointerMap places;
};

} // namespace mlir_shard
