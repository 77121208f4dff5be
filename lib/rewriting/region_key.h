// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Keys of what is in the regions of operations, by which equal ones are found.
#pragma once

#include "ir/capi.h"
#include "ir/signatures.h"

#include <functional>
#include <vector>

namespace mlir_shard {

// Appends the regions of an operation to a key: the types of the arguments of blocks, and the signatures and operands of
// operations. Values defined in the regions are numbered, others stand for themselves. The operands of operations for
// which `isCommutative` holds are sorted.
void appendRegions(const Capi &capi, MlirOperation op, Signatures &signatures,
                   const std::function<bool(MlirOperation)> &isCommutative, std::vector<const void *> &key);

} // namespace mlir_shard
