// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One operation in place of equal ones.
#pragma once

#include "capi.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir_shard {

// Merges the operations of a block that agree in name, operands, types and attributes into the first one, under all of
// `root`. They have one of the names and a single result, and `merges` says yes of one, asked once for all that agree
// in name, types and attributes.
void mergeEqual(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                const std::function<bool(MlirOperation)> &merges);

} // namespace mlir_shard
