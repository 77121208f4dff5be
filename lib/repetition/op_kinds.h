// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The kinds of the operations that have one of some names: what is decided of an operation is decided once for its kind.
#pragma once

#include "ir/capi.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// Operations of one kind agree in name, types, attributes and in what is in their regions, though not in the values
// that they use. With neighbours they also agree, for each operand, in the operation that it is a result of, in whether
// that is in the same block, in whether it has other uses and in which other operands are the same; and for each result
// in how it is used: not, several times, or once, by what operation.
//
// Only what has the names is read, and its neighbours. Valid while nothing is erased.
class OpKinds {
public:
  // The values of attributes named in `ignored` do not count, only whether they are there.
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

// The operations under `root` that have one of the names, and of which the first `count` operands, or where that is 0 one
// of all, are each a result, and where `once` used once, of an operation that has a name in `definers`; in pre-order.
std::vector<MlirOperation> operationsOfResults(const Capi &capi, MlirOperation root,
                                               const std::vector<std::string> &names,
                                               const std::vector<std::string> &definers, std::intptr_t count,
                                               bool once);

} // namespace mlir_shard
