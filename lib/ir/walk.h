// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Walks over an entire module, which would take too long in Python.
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

// Replaces the locations of all operations and block arguments under `root` that are in the parsed buffer `buffer` by
// locations in the user's file `file`.
void moveLocations(const Capi &capi, MlirOperation root, std::string_view buffer, std::string_view file,
                   const SourceMap &map);

// The properties in which uses of an attribute must agree to count as one: no uses count as one, uses with equal types
// of operands and results, or uses with equal ranks of results.
enum class Likeness { None, Types, Ranks };

// An attribute to find.
struct AttributeQuery {
  std::string name;
  Likeness likeness;
};

// A place with one of the attributes to find: an operation, or argument or result `index` of a function.
struct AttributeUse {
  enum class Place { Operation, Argument, Result };
  MlirOperation op;
  std::size_t query; // Index into the queries.
  Place place;
  std::intptr_t index;
};

// An operation to search, and whether the operations inside it are searched too.
struct Searched {
  MlirOperation op;
  bool isInside;
};

// The uses of attributes that were found, by the keys that determine whether uses count as one.
using SeenUses = std::unordered_set<std::vector<const void *>, PointersHash>;

// Returns the uses of discardable attributes of operations, in their order. Of uses that agree in the attribute, in
// types or ranks, and in the innermost enclosing operation with a name in `scopes`, only the first is returned, and
// none that is in `seen` from an earlier call; enclosing operations agree if their contents are equal.
std::vector<AttributeUse> distinctAttributeUses(const Capi &capi, const std::vector<Searched> &searched,
                                                const std::vector<AttributeQuery> &queries,
                                                const std::vector<std::string> &scopes, SeenUses &seen);

// Returns the first operation of each name under `root`, in pre-order.
std::vector<MlirOperation> firstOperations(const Capi &capi, MlirOperation root);

// The contents of some operations, and of the operations below them unless `isAlone` is set: the names of operations
// and of their discardable attributes, including those in signatures of functions, whether a region has more than one
// block, and whether a value is a tensor without elements.
struct Contents {
  std::vector<std::string> operations, attributes;
  bool hasBranches = false;
  bool hasEmptyTensors = false;
};
Contents contentsOf(const Capi &capi, const std::vector<MlirOperation> &roots, bool isAlone);

// Returns the operations under `root` with one of the names, in pre-order or in post-order.
std::vector<MlirOperation> operationsNamed(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                                           bool postOrder);

// Returns the operations of a name directly in the regions of `op`.
std::vector<MlirOperation> childrenNamed(const Capi &capi, MlirOperation op, const std::string &name);

} // namespace mlir_shard
