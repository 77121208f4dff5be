// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Keys of the regions of operations, which are equal for equal regions.
#pragma once

#include "ir/capi.h"
#include "ir/signatures.h"

#include <functional>
#include <vector>

namespace mlir_shard {

// Appends the regions of an operation to a key: the types of block arguments, and the signatures and operands of
// operations. Values defined in the regions are numbered, other values are represented by their pointers. The operands
// of operations for which `isCommutative` returns true are sorted.
void appendRegions(const Capi &capi, MlirOperation op, Signatures &signatures,
                   const std::function<bool(MlirOperation)> &isCommutative, std::vector<const void *> &key);

} // namespace mlir_shard
