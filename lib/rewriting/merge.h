// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One operation in place of equal ones.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir_shard {

// The operands of an operation that have to be results of merged operations for it to be merged; none at all where it
// never is.
using MergedOperands = std::optional<std::vector<std::intptr_t>>;

// Merges the operations of a block that agree in name, operands, types, attributes and regions into the first one,
// under all of `root`. They have one of the names and a single result; `merges` is asked once for all that agree in
// name, types and attributes. Returns those that others were merged into.
std::vector<MlirOperation> mergeEqual(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                const std::function<MergedOperands(MlirOperation)> &merges);

// An operation without effects; those of a group are equal if their operands are.
struct Droppable {
  static constexpr std::int32_t unequal = -2, identity = -3;

  MlirOperation op;
  std::int32_t group; // `unequal` for one that no other is equal to, `identity` for one whose results are its operands.
};

// Replaces each of the operations, which are in pre-order, by an earlier equal one in its block or in a block around it,
// and erases those without uses. Whether there was any.
bool dropRepeated(const Capi &capi, const std::vector<Droppable> &ops);

} // namespace mlir_shard
