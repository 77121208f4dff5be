// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations of which a sharding rule is known, visited once for all that are of one kind and whose values have the same
// numbers: the numbers say how the values are sharded.
#pragma once

#include "arrays/module_arrays.h"
#include "repetition/insertion.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

class ShardedOps {
public:
  // How an operation counts among the users of a value.
  enum class Use : std::uint8_t { Ignored, Weighed, Reshards, Returns };

  // Operations of a kind agree in signature, in the contents of their regions, and in their `tags`, 0 where none is given.
  // The tag of an operation that none is to be alike with is a number of its own.
  ShardedOps(ModuleArrays &arrays, const std::vector<std::int32_t> &ops,
             const std::unordered_map<std::int32_t, std::int32_t> &tags);

  std::vector<std::int32_t> kinds;           // Of each operation of the module; -1 for those that are not among `ops`.
  std::vector<std::int32_t> representatives; // The first operation of each kind.

  // For each operation the first of them that is of its kind and whose operands and results have the same numbers.
  std::vector<std::int32_t> alike(const std::vector<std::int32_t> &ops, const std::int32_t *numbers) const;

  // What to insert around an operation; `isAll` is that no more has to be done for its equivalence class: for operations
  // of the kind whose operands and results have the same numbers.
  struct Visited {
    std::shared_ptr<const Insertion> insertion;
    bool isAll = false;
  };

  // Visits operations in the order given, and inserts around each what `visit` returns, which the arrays list as made. It
  // is called once for an equivalence class where that is all. Returns the operations that got other attributes.
  std::vector<std::int32_t> visit(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                  const std::function<Visited(std::int32_t op)> &visit);

  // Returns, for each operand of an operation and then each result, whether it is resharded there; nothing if it never is.
  // Called once for an equivalence class.
  using WhereResharded = std::function<std::vector<bool>(std::int32_t op)>;

  // Calls `settle`, which may change the numbers of the results of an operation, for the weighed operations of which a
  // result is resharded: behind the operation, in front of a user, or as it is returned. Operations of a kind whose
  // results have the same users get the same numbers without a call.
  //
  // `ops` are visited in their order. `uses` has for each kind how its operations count as users, `returned` the numbers
  // of what is returned, 0 for a result of the function without a sharding. Returns the operations whose results have
  // other numbers than before.
  std::vector<std::int32_t> settle(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                   const std::vector<Use> &uses, const std::vector<std::int32_t> &returned,
                                   const WhereResharded &whereResharded,
                                   const std::function<void(std::int32_t op)> &settle);

private:
  using Key = std::vector<std::int32_t>;
  class Resharded;

  void addNumbers(std::int32_t op, const std::int32_t *numbers, Key &key) const;

  ModuleArrays &arrays;
};

} // namespace mlir_shard
