// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations that are isomorphic to an earlier operation in all properties that determine how they are rewritten.
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

// The isomorphic operations of a module. Isomorphic operations agree in
//  - their signatures, without the names if these are ignored, and the contents of their regions, including the values
//    from outside that the regions use;
//  - the states of their operands and results before they are visited;
//  - which of their operands are the same value, and, unless this is ignored, which are computed from constants alone,
//    and how;
//  - the context keys of their sharding rules.
// The first of them represents the others. Operations of some signatures may also share a plan that only gives results
// their local types, if they differ in sizes alone and have even shards.
class Repetitions {
public:
  // The plan of an operation: the states of its results, and whether the plan only gives results their local types and
  // is the same for all sizes that are divided evenly.
  struct Planned {
    std::vector<std::int32_t> states;
    bool isForAnySizes = false;
  };
  // The properties that may differ between isomorphic operations of a signature, and whether operations that differ in
  // sizes may share a plan.
  struct Ignored {
    bool name = false, constants = false, sizes = false;
  };
  // Plans an operation. If it returns nullopt, the operation represents no others.
  using Plan = std::function<std::optional<Planned>(std::int32_t op)>;
  // Returns the context key of an operation's sharding rule, as a number; nullopt if the rules of its signature have no
  // key.
  using ContextKey = std::function<std::optional<std::int32_t>(std::int32_t op)>;
  // Returns the number of shards of each dimension of a value in a state.
  using Shards = std::function<std::vector<std::int64_t>(std::int32_t state)>;

  // `ignored` has one entry for each signature, or is empty if nothing is ignored. `kept` contains for each signature
  // whether operations are left out of a visit while no operand has a state, that is, a number that is not negative;
  // empty if none are.
  Repetitions(const ModuleArrays &arrays, const std::vector<Ignored> &ignored, const std::vector<bool> &kept);

  // Visits an operation and the following ones in its block except for the last, which is returned. Calls `plan` for
  // the first of isomorphic operations; the results of all get its states. Operations visited in different `context`s
  // are not isomorphic. `plan` may call this function.
  std::int32_t visit(std::int32_t first, std::int32_t context, std::int32_t *states, const Plan &plan,
             const ContextKey &contextKey, const Shards &shards);

  // Gives the results of all operations that share a plan for any sizes, but for the first, their local types.
  void localize(const std::int32_t *states);

  // Returns the operations that an operation represents, without the operation itself.
  const std::vector<std::int32_t> &representedBy(std::int32_t op) const;

  // Returns the number of an operation; -1 if it was not read.
  std::int32_t numberOf(MlirOperation op) const;

private:
  struct Known {
    std::int32_t op;
    std::vector<std::int32_t> states;
  };
  using Key = std::vector<std::int32_t>;
  using States = std::vector<std::int32_t>;

  void findClasses(const std::vector<Ignored> &ignored);
  void findConstants();
  void readKey(std::int32_t op, std::int32_t context, const std::int32_t *states);
  bool isKept(std::int32_t op, const std::int32_t *states) const;
  void addContextKey(std::int32_t op, const ContextKey &contextKey);
  bool hasEvenShards(std::int32_t op, const std::int32_t *states, const States &after, const Shards &shards);
  bool isEven(std::int32_t value, std::int32_t state, const Shards &shards);
  MlirType localType(MlirType type, const std::vector<std::int64_t> &shards) const;

  const ModuleArrays &arrays;
  const Capi &capi;
  PointerMap numbers;
  RegionContents regions;
  const std::vector<std::int32_t> &ends; // The end of the operations inside each operation.
  // By signature: the signature, or a negative number of the signature without its name if the name is ignored.
  std::vector<std::int32_t> classes;
  std::vector<bool> ignoresConstants; // By signature.
  std::vector<std::int32_t> forms;    // By signature; -1 if its operations do not share plans for any sizes.
  std::vector<bool> kept;             // By signature.
  // Numbers of values that are computed from constants alone, equal for isomorphic values; -1 for other values.
  std::vector<std::int32_t> constants;
  std::unordered_set<std::int32_t> withoutContextKey; // Classes.
  std::unordered_map<Key, Known, NumbersHash> known;
  std::unordered_map<Key, States, NumbersHash> knownForAnySizes; // The states of results.
  std::unordered_map<std::int32_t, std::vector<std::int64_t>> shardsOf; // By state.
  std::vector<std::int32_t> sharing; // The operations that share the plan of an operation of other sizes.
  Key key; // The key of the operation visited last.
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> represented;
};

} // namespace mlir_shard
