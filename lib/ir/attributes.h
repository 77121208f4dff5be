// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Functions that read and replace attributes of many operations, and process each distinct attribute once.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlir_shard {

// Attributes of operations: for each name, a column with the number of each operation's attribute of that name among
// the distinct attributes; -1 if the operation has no such attribute.
struct AttributeColumns {
  std::vector<std::vector<std::int32_t>> columns;
  std::vector<MlirAttribute> distinct;
};

AttributeColumns attributeColumns(const Capi &capi, const std::vector<MlirOperation> &ops,
                                  const std::vector<std::string> &names);

// The attributes to search: discardable attributes called `name`, of operations and in the signatures of functions, and
// all attributes of operations with a name in `holders`.
struct AttributePlaces {
  std::string name;
  std::vector<std::string> holders;
};

// Returns the distinct attributes in `places` of `root` and of the operations below it.
std::vector<MlirAttribute> distinctAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places);

// The result of a replacement: whether any attribute was replaced, and the operations with a name in `holders` of which
// an attribute other than `name` was replaced.
struct ReplacedAttributes {
  bool isAny = false;
  std::vector<MlirOperation> holders;
};

// Replaces the attributes in `places` of `root` and of the operations below it by the results of `replaced`, which is
// called once for each distinct attribute, in the order of the text.
ReplacedAttributes replaceAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places,
                                     const std::function<MlirAttribute(MlirAttribute)> &replaced);

// Removes the discardable attributes of `root` and of the operations below it that are called `name`, or all of a
// dialect if `name` is the dialect's name followed by a dot.
void removeAttributes(const Capi &capi, MlirOperation root, const std::string &name);

} // namespace mlir_shard
