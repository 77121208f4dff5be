// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations that are isomorphic to an earlier one in all that decides how they are rewritten.
#pragma once

#include "arrays/module_arrays.h"
#include "arrays/region_contents.h"
#include "ir/signatures.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mlir_shard {

// Isomorphic operations agree in
//  - their signature, but for the name where that is ignored, and the contents of their regions, with the values that
//    these take from around them;
//  - the states of the values they use and of those they define, as these are before they have been visited;
//  - which of their operands are the same value, and, where that is not ignored, which are made of constants alone, and
//    how;
//  - the context keys of their sharding rules.
// The first of them represents the others.
class Repetitions {
public:
  // Plans an operation and returns the states of its results. Without these the operation represents no other one.
  using Plan = std::function<std::optional<std::vector<std::int32_t>>(std::int32_t op)>;
  // The context key of an operation's sharding rule, as a number; none where rules of its signature have no key.
  using ContextKey = std::function<std::optional<std::int32_t>(std::int32_t op)>;

  // `ignored` has for each signature whether its name and the constants are ignored; empty where none are.
  Repetitions(const ModuleArrays &arrays, const std::vector<std::pair<bool, bool>> &ignored);

  // Visits an operation and those behind it in its block, but not the last, which it returns. Calls `plan` for the first
  // of isomorphic operations; the results of each get its states. Operations visited in different `context`s are not
  // isomorphic. `plan` may call this.
  std::int32_t visit(std::int32_t first, std::int32_t context, std::int32_t *states, const Plan &plan,
             const ContextKey &contextKey);

  // The operations that an operation represents, without itself.
  const std::vector<std::int32_t> &representedBy(std::int32_t op) const;

  // The number of an operation, -1 for one that was not read.
  std::int32_t numberOf(MlirOperation op) const;

private:
  struct Known {
    std::int32_t op;
    std::vector<std::int32_t> states;
  };
  using Key = std::vector<std::int32_t>;

  void findClasses(const std::vector<std::pair<bool, bool>> &ignored);
  void findConstants();
  void readKey(std::int32_t op, std::int32_t context, const std::int32_t *states);
  void addContextKey(std::int32_t op, const ContextKey &contextKey);

  const ModuleArrays &arrays;
  const Capi &capi;
  PointerMap numbers;
  RegionContents regions;
  const std::vector<std::int32_t> &ends; // Where what is inside each operation ends.
  // By signature: itself, or where its name is ignored the number below 0 of what is left of it.
  std::vector<std::int32_t> classes;
  std::vector<bool> ignoresConstants; // By signature.
  // Of values made of constants alone: equal numbers for isomorphic ones; -1 for others.
  std::vector<std::int32_t> constants;
  std::unordered_set<std::int32_t> withoutContextKey; // Classes.
  std::unordered_map<Key, Known, NumbersHash> known;
  Key key; // Of the operation visited last.
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> represented;
};

} // namespace mlir_shard
