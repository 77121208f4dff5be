// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Walks over a whole module, too long for a loop in Python.
#pragma once

#include "ir/capi.h"
#include "ir/signatures.h"
#include "text/source_map.h"

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mlir_shard {

// Gives every operation and block argument under `root` that the parser located in the buffer `buffer` a location in
// the user's file `file`.
void moveLocations(const Capi &capi, MlirOperation root, std::string_view buffer, std::string_view file,
                   const SourceMap &map);

// What uses of an attribute have to agree in to count as one: nothing makes them one, the types of the operands and
// results of their operations, or the ranks of the results.
enum class Likeness { None, Types, Ranks };

// An attribute to look for.
struct AttributeQuery {
  std::string name;
  Likeness likeness;
};

// A place that carries one of the attributes asked for: an operation, or argument or result `index` of a function.
struct AttributeUse {
  enum class Place { Operation, Argument, Result };
  MlirOperation op;
  std::size_t query; // Index into the attributes asked for.
  Place place;
  std::intptr_t index;
};

// An operation to look at, and whether what is inside of it is looked at too.
struct Searched {
  MlirOperation op;
  bool isInside;
};

// The uses of attributes that were found, by all that decides whether uses are alike.
using SeenUses = std::unordered_set<std::vector<const void *>, PointersHash>;

// The uses of discardable attributes of operations, in their order. Of uses that are alike, agreeing in attribute, in
// types or ranks, and in the innermost enclosing operation of a name in `scopes`, only the first is given, and none that
// is in `seen` from the call before; enclosing operations agree by their contents.
std::vector<AttributeUse> distinctAttributeUses(const Capi &capi, const std::vector<Searched> &searched,
                                                const std::vector<AttributeQuery> &queries,
                                                const std::vector<std::string> &scopes, SeenUses &seen);

// The first operation of each name under `root`, in pre-order.
std::vector<MlirOperation> firstOperations(const Capi &capi, MlirOperation root);

// What some operations hold, and those under them unless they are taken alone: the names of operations and of their
// discardable attributes, those in signatures of functions too, whether a region has more than one block, and whether a
// value is a tensor of no elements.
struct Contents {
  std::vector<std::string> operations, attributes;
  bool hasBranches = false;
  bool hasEmptyTensors = false;
};
Contents contentsOf(const Capi &capi, const std::vector<MlirOperation> &roots, bool isAlone);

// The operations under `root` that have one of the names: in pre-order, or each after those inside it.
std::vector<MlirOperation> operationsNamed(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                                           bool postOrder);

// The operations of a name right in the regions of `op`.
std::vector<MlirOperation> childrenNamed(const Capi &capi, MlirOperation op, const std::string &name);

} // namespace mlir_shard
