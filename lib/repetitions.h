// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations that are like an earlier one in all that decides what becomes of them: they follow that one.
#pragma once

#include "module_arrays.h"
#include "signatures.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// Operations are alike that agree in
//  - their signature, and the contents of their regions, with the values that these take from around them;
//  - the states of the values they use and of those they define, as these are before they have been visited;
//  - which of their operands are the same value, and which are made of constants alone, and how.
// The first of those that are alike leads, and the others follow it.
class Repetitions {
public:
  // The states of an operation's results, and whether that is asked of each that is like it.
  using Answer = std::pair<std::vector<std::int32_t>, bool>;
  // What is asked of an operation and of the one that it would follow, -1 for none. Without an answer it stands alone.
  using Ask = std::function<std::optional<Answer>(std::int32_t op, std::int32_t leader)>;

  explicit Repetitions(const ModuleArrays &arrays);

  // Visits an operation and those behind it in its block, but not the last. The results of each get the states that it,
  // or its leader, was answered with. Operations visited in different `context`s are not alike. May be called by `ask`.
  void visit(std::int32_t first, std::int32_t context, std::int32_t *states, const Ask &ask);

  // Those that follow an operation.
  const std::vector<std::int32_t> &followersOf(std::int32_t leader) const;

  // The number of an operation, -1 for one that was not read.
  std::int32_t numberOf(MlirOperation op) const;

private:
  struct Known {
    std::int32_t leader;
    std::vector<std::int32_t> states;
    bool isAsked;
  };
  using Key = std::vector<std::int32_t>;

  bool isLast(std::int32_t op) const { return !capi.mlirOperationGetNextInBlock(arrays.ops[op]); }
  void findEnds();
  void findConstants();
  Key keyOf(std::int32_t op, std::int32_t context, const std::int32_t *states) const;
  void addRegions(std::int32_t op, Key &key) const;

  const ModuleArrays &arrays;
  const Capi &capi;
  PointerMap numbers;
  std::vector<std::int32_t> ends; // Where what is inside each operation ends.
  // Of values made of constants alone: equal numbers for those that are made alike; -1 for others.
  std::vector<std::int32_t> constants;
  std::unordered_map<Key, Known, NumbersHash> known;
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> followers;
};

} // namespace mlir_shard
