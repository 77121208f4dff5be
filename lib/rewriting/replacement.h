// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Functions that replace operations, and insert operations between values and their uses.
#pragma once

#include "ir/capi.h"
#include "ir/function_signature.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

using Attributes = std::vector<std::pair<std::string, MlirAttribute>>;

// Replaces `op` by an operation called `name` with the same operands, result types and location. It has the attributes
// in `added` and those of `op` except for the `dropped` ones (nullopt drops all); attributes of `op` take precedence.
// If `body` is given, its first region is moved into the operation, which has no region otherwise.
MlirOperation replaceOperation(const Capi &capi, MlirOperation op, const std::string &name,
                               const std::optional<std::vector<std::string>> &dropped, const Attributes &added,
                               MlirOperation body);

// Appends an operation without operands and results to the first block in `parent`, with the location and the contents
// of the first region of `body`.
MlirOperation appendOperation(const Capi &capi, MlirOperation parent, const std::string &name,
                              const Attributes &attributes, MlirOperation body);

// Replaces `ops` by one operation before `before` with all their operands and results, the name, the attributes and the
// first region of the first operation, and a fused location.
MlirOperation joinOperations(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before);

// Creates a cast before `before` with the operands and results of all of `ops`, whose results become unused, and with a
// fused location.
MlirOperation placeholderFor(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before);

// Returns the function type with the arguments of the body of `op` and its results, as an attribute.
MlirAttribute functionTypeOf(const Capi &capi, MlirOperation op);

// Return the last operation in the first block of `op`, and the number of blocks in its first region.
MlirOperation terminatorOf(const Capi &capi, MlirOperation op);
std::size_t blockCount(const Capi &capi, MlirOperation op);

// An operation from a value to another of the same type, inserted between the value and its uses.
struct Link {
  std::string name;
  std::string attribute;
};

// Adds a link after each of the arguments or results of the operations that has a wanted type, unless a link is already
// its only use, and returns the added links. Link i of an operation gets `attributes[i]` if it is given.
std::vector<MlirOperation> addLinks(const Capi &capi, const Link &link, Side side,
                                    const std::vector<MlirOperation> &ops,
                                    const std::vector<std::vector<MlirAttribute>> &attributes,
                                    const std::function<bool(MlirType)> &isWanted);

// The links that were removed.
struct TakenLinks {
  std::vector<std::vector<std::int32_t>> numbers; // For each value of each operation, the number of its link's
                                                  // attribute; -1 for none.
  std::vector<MlirAttribute> attributes;          // The distinct attributes, by number.
  std::vector<MlirOperation> users;               // The users of the links, except for links that were removed too.
};

// Removes the links that are the only use of an argument or a result.
TakenLinks takeLinks(const Capi &capi, const Link &link, Side side, const std::vector<MlirOperation> &ops);

} // namespace mlir_shard
