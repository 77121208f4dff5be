// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Elimination of common sub-expressions, by the signatures of operations.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

// What the elimination of common sub-expressions may do with an operation, by its memory effects.
enum class Purity : std::int32_t {
  Impure,      // It is kept.
  Isolated,    // It is kept, and operations in its regions are not compared with those outside.
  Removable,   // It is erased if its results are unused.
  Pure,        // It is erased too if an equal one is before it.
  Commutative, // It is pure, and its operands are equal in any order.
  Varies,      // That depends on its attributes, types and regions.
};

using PurityOfNames = std::vector<std::pair<std::string, Purity>>;
using PurityOfOperation = std::function<Purity(MlirOperation)>;

struct Eliminated {
  bool isAny = false;
  std::vector<MlirOperation> kept; // The operations that have replaced others.
};

// Replaces operations under `root` by equal ones before them, in their block or in one around it, and erases unused ones,
// as upstream's pass `cse` does. No region has more than one block. `purities` has every name of an operation under
// `root`. `ofOperation` is called once for operations that agree in attributes, types and regions; it does not return
// `Varies`.
Eliminated eliminateCommonOps(const Capi &capi, MlirOperation root, const PurityOfNames &purities,
                              const PurityOfOperation &ofOperation);

} // namespace mlir_shard
