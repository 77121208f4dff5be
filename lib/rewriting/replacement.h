// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations put in the place of others, and between values and their uses.
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

// Puts an operation called `name` in the place of `op`, with its operands, result types and location, and with the
// attributes given and those of `op` but for the `dropped` ones, none being all; those of `op` win. It takes what is in
// the first region of `body`, where that is given, and else has no region.
MlirOperation replaceOperation(const Capi &capi, MlirOperation op, const std::string &name,
                               const std::optional<std::vector<std::string>> &dropped, const Attributes &added,
                               MlirOperation body);

// Puts an operation without operands and results at the end of the first block in `parent`, with the location of
// `body` and what is in its first region.
MlirOperation appendOperation(const Capi &capi, MlirOperation parent, const std::string &name,
                              const Attributes &attributes, MlirOperation body);

// Puts an operation in front of `before` that has the operands and results of all of `ops`, which are erased, the name,
// the attributes and what is in the first region of the first, and a fused location.
MlirOperation joinOperations(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before);

// Puts a cast in front of `before` that has the operands and results of all of `ops`, whose results are not used any
// more, and a fused location.
MlirOperation placeholderFor(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before);

// The type of a function that has the arguments of the body of `op`, and its results, as an attribute.
MlirAttribute functionTypeOf(const Capi &capi, MlirOperation op);

// The last operation in the first block of `op`, and how many blocks its first region has.
MlirOperation terminatorOf(const Capi &capi, MlirOperation op);
std::size_t blockCount(const Capi &capi, MlirOperation op);

// An operation from a value to one of its type, which stands between the value and its uses.
struct Link {
  std::string name;
  std::string attribute;
};

// Puts a link behind each of the arguments or results of the operations that have a wanted type, and no link yet that
// is the only use, and gives the links. Link i of an operation gets `attributes[i]`, where there is one.
std::vector<MlirOperation> addLinks(const Capi &capi, const Link &link, Side side,
                                    const std::vector<MlirOperation> &ops,
                                    const std::vector<std::vector<MlirAttribute>> &attributes,
                                    const std::function<bool(MlirType)> &isWanted);

// Links that were removed.
struct TakenLinks {
  std::vector<std::vector<std::int32_t>> numbers; // For each value of each operation that of its link's attribute, or -1.
  std::vector<MlirAttribute> attributes;          // The distinct ones, by number.
  std::vector<MlirOperation> users;               // Of the links, but for links that were removed too.
};

// Removes the links that are the only use of an argument or a result.
TakenLinks takeLinks(const Capi &capi, const Link &link, Side side, const std::vector<MlirOperation> &ops);

} // namespace mlir_shard
