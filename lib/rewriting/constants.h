// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Hoisting of constants: one constant for each value, at the front of a function.
#pragma once

#include "ir/capi.h"

#include <string>
#include <vector>

namespace mlir_shard {

// Moves the constants under `root` to the front of the region of the enclosing isolated operation, and replaces equal
// constants by the first one, like the folding of upstream's greedy driver. Constants have one of the names, an
// attribute `value` and one result; operations with a name in `isolated` are isolated from above. Returns whether
// anything has changed.
bool hoistConstants(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                    const std::vector<std::string> &isolated);

} // namespace mlir_shard
