// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations with known sharding rules, visited once for all operations of one kind whose values have the same numbers,
// which represent the shardings of the values.
#pragma once

#include "arrays/module_arrays.h"
#include "repetition/insertion.h"
#include "repetition/kept_ops.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

class ShardedOps {
public:
  // The role of an operation as a user of a value.
  enum class Use : std::uint8_t { Ignored, Weighed, Reshards, Returns };

  // Operations of a kind agree in signature, in the contents of their regions, and in their `tags`, which are 0 if not
  // given. A unique tag makes an operation different from all others. `forms` are those of `KeptOps`; operations with
  // a tag have no form.
  ShardedOps(ModuleArrays &arrays, const std::vector<std::int32_t> &ops,
             const std::unordered_map<std::int32_t, std::int32_t> &tags, std::vector<std::int32_t> forms);

  std::vector<std::int32_t> kinds;           // Of each operation of the module; -1 for operations that are not in
                                             // `ops`.
  std::vector<std::int32_t> representatives; // The first operation of each kind.

  // Records the form of an operation around which nothing is resharded, see `KeptOps`; operations that are kept are
  // neither visited nor asked for.
  void keep(std::int32_t op, const std::int32_t *numbers, KeptForm form);

  // Returns for each operation the first one of its kind whose operands and results have the same numbers.
  std::vector<std::int32_t> alike(const std::vector<std::int32_t> &ops, const std::int32_t *numbers) const;

  // The insertion around an operation. `isAll` is set if nothing else has to be done for its equivalence class, which
  // consists of the operations of the kind whose operands and results have the same numbers.
  struct Visited {
    std::shared_ptr<const Insertion> insertion;
    bool isAll = false;
  };

  // Visits operations in the given order, and inserts the operations that `visit` returns around each, which are also
  // added to the arrays' made operations. `visit` is called once for each equivalence class if it sets `isAll`. Returns
  // the operations whose attributes were changed.
  std::vector<std::int32_t> visit(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                  const std::function<Visited(std::int32_t op)> &visit);

  // Returns for each operand of an operation and then for each result whether it is resharded there; empty if the
  // operation is never resharded. Called once for each equivalence class.
  using WhereResharded = std::function<std::vector<bool>(std::int32_t op)>;

  // Calls `settle`, which may change the numbers of the results of an operation, for the weighed operations with a
  // result that is resharded after the operation, before a user, or when it is returned. Operations of a kind whose
  // results have the same users get the same numbers without a call.
  //
  // `ops` are visited in order. `uses` contains the role of the operations of each kind, `returned` the numbers of the
  // returned values, 0 for a function result without a sharding. Returns the operations whose results have new numbers.
  std::vector<std::int32_t> settle(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                   const std::vector<Use> &uses, const std::vector<std::int32_t> &returned,
                                   const WhereResharded &whereResharded,
                                   const std::function<void(std::int32_t op)> &settle);

private:
  using Key = std::vector<std::int32_t>;
  class Resharded;

  void addNumbers(std::int32_t op, const std::int32_t *numbers, Key &key) const;
  bool isKept(std::int32_t op, const std::int32_t *numbers);

  ModuleArrays &arrays;
  KeptOps kept;
  std::vector<bool> hasTag; // By kind.
};

} // namespace mlir_shard
