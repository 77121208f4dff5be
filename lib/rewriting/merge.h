// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Merging of equal operations.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir_shard {

// The operands of an operation that must be results of merged operations for it to be merged; nullopt if it is never
// merged.
using MergedOperands = std::optional<std::vector<std::intptr_t>>;

// Merges the operations under `root` that are in the same block and agree in name, operands, types, attributes and
// regions into the first one. Only operations with one of the names are merged, which must have a single result;
// `merges` is called once for operations that agree in name, types and attributes. Returns the operations that others
// were merged into.
std::vector<MlirOperation> mergeEqual(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                const std::function<MergedOperands(MlirOperation)> &merges);

// An operation without effects; operations of a group are equal if their operands are.
struct Droppable {
  static constexpr std::int32_t unequal = -2, identity = -3;

  MlirOperation op;
  std::int32_t group; // `unequal` if no other operation is equal, `identity` if the results of the operation are its
                      // operands.
};

// Replaces each of the operations, which must be in pre-order, by an earlier equal operation in its block or in an
// enclosing block, and erases operations without uses. Returns whether anything has changed.
bool dropRepeated(const Capi &capi, const std::vector<Droppable> &ops);

} // namespace mlir_shard
