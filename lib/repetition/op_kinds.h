// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The kinds of the operations with given names, by which a decision is made once for all operations of a kind.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// The kinds of operations. Operations of one kind agree in name, types, attributes and in the contents of their
// regions, but may use different values. With neighbours they also agree for each operand in the operation that defines
// it, whether this is in the same block, whether the operand has other uses, and which other operands are the same
// value; and for each result in whether it has no use, several uses, or a single use by which operation.
//
// Only operations with the names and their neighbours are read. The kinds stay valid while nothing is erased.
class OpKinds {
public:
  // The values of attributes named in `ignored` are ignored, but not their presence.
  OpKinds(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
          const std::vector<std::string> &ignored, bool neighbours);

  std::vector<MlirOperation> ops; // In pre-order.
  std::vector<std::int32_t> kinds;
  std::vector<MlirOperation> representatives; // The first operation of each kind.

private:
  using Key = std::vector<std::int32_t>;

  std::int32_t contentOf(MlirOperation op);
  void addContent(MlirOperation op, PointerMap &local, Key &key);
  void define(MlirOperation op, PointerMap &local, std::int32_t &count) const;
  void addNeighbours(MlirOperation op, Key &key);

  const Capi &capi;
  std::vector<std::string> ignored;
  Signatures signatures;
  PointerMap types;
  std::int32_t typeCount = 0;
  PointerMap contents; // By operation.
  std::unordered_map<Key, std::int32_t, NumbersHash> contentNumbers;
};

// Returns the operations under `root`, in pre-order, that have a name in `names` and whose first `count` operands (at
// least one operand if `count` is 0) are results of operations with a name in `definers`, and have no other use if
// `once` is set. Between them may be operations with a name in `through`, whose results are used once.
std::vector<MlirOperation> operationsOfResults(const Capi &capi, MlirOperation root,
                                               const std::vector<std::string> &names,
                                               const std::vector<std::string> &definers, std::intptr_t count,
                                               bool once, const std::vector<std::string> &through);

} // namespace mlir_shard
