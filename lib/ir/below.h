// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Iteration over the operations below an operation, and over its attributes.
#pragma once

#include "ir/block_order.h"
#include "ir/capi.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace mlir_shard {

// Calls `visit` with each operation of a block until it returns false. `visit` must not erase the operation.
template <typename Visit> void eachInBlock(const Capi &capi, MlirBlock block, const Visit &visit) {
  BlockWalk walk(capi, block);
  for (MlirOperation op = capi.mlirBlockGetFirstOperation(block); op; op = capi.mlirOperationGetNextInBlock(op)) {
    walk.come(op);
    if constexpr (std::is_same_v<decltype(visit(op)), bool>) {
      if (!visit(op))
        return;
    } else {
      visit(op);
    }
  }
  walk.end();
}

// Calls `visit` with each operation directly in the regions of `op`. `visit` must not erase the operation.
template <typename Visit> void eachChild(const Capi &capi, MlirOperation op, const Visit &visit) {
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region))
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block))
      eachInBlock(capi, block, visit);
}

// Calls `visit` with all operations in the regions of `op`, in post-order or in pre-order.
template <typename Visit> void eachBelow(const Capi &capi, MlirOperation op, bool postOrder, const Visit &visit) {
  eachChild(capi, op, [&](MlirOperation child) {
    if (!postOrder)
      visit(child);
    eachBelow(capi, child, postOrder, visit);
    if (postOrder)
      visit(child);
  });
}

// Returns the last operation of a block; null if the block is empty.
inline MlirOperation lastInBlock(const Capi &capi, MlirBlock block) {
  MlirOperation last = capi.mlirBlockGetTerminator(block);
  if (last)
    return last;
  // The C API does not regard an unregistered operation as a terminator.
  eachInBlock(capi, block, [&](MlirOperation op) { last = op; });
  return last;
}

// Returns all attributes of an operation, inherent and discardable.
inline std::vector<MlirNamedAttribute> attributesOf(const Capi &capi, MlirOperation op) {
  std::vector<MlirNamedAttribute> found;
  const std::intptr_t count = capi.mlirOperationGetNumAttributes(op);
  found.reserve(count);
  for (std::intptr_t i = 0; i < count; ++i)
    found.push_back(capi.mlirOperationGetAttribute(op, i));
  return found;
}

// Returns the names as pointers to identifiers in the context of `op`, which can be compared.
inline std::vector<const void *> identifiers(const Capi &capi, MlirOperation op,
                                             const std::vector<std::string> &names) {
  std::vector<const void *> found;
  for (const std::string &name : names)
    found.push_back(capi.mlirIdentifierGet(capi.mlirOperationGetContext(op), toStringRef(name)).pointer);
  return found;
}

inline bool contains(const std::vector<const void *> &pointers, const void *pointer) {
  return std::find(pointers.begin(), pointers.end(), pointer) != pointers.end();
}

} // namespace mlir_shard
