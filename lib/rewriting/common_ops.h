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

// The treatment of an operation by the elimination of common sub-expressions, by its memory effects.
enum class Purity : std::int32_t {
  Impure,      // It is kept.
  Isolated,    // It is kept, and operations in its regions are not compared with those outside.
  Removable,   // It is erased if its results are unused.
  Pure,        // It is also erased if an equal operation precedes it.
  Commutative, // It is pure, and the order of its operands does not matter.
  Varies,      // The purity depends on its attributes, types and regions.
};

using PurityOfNames = std::vector<std::pair<std::string, Purity>>;
using PurityOfOperation = std::function<Purity(MlirOperation)>;

struct Eliminated {
  bool isAny = false;
  std::vector<MlirOperation> kept; // The operations that have replaced others.
};

// Replaces operations under `root` by equal operations that precede them in their block or in an enclosing block, and
// erases unused ones, like the upstream pass `cse`. All regions must have at most one block. `purities` must contain
// the names of all operations under `root`. `ofOperation` is called once for operations that agree in attributes, types
// and regions; it must not return `Varies`.
Eliminated eliminateCommonOps(const Capi &capi, MlirOperation root, const PurityOfNames &purities,
                              const PurityOfOperation &ofOperation);

} // namespace mlir_shard
