// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Attributes of many operations read and replaced, each distinct one looked at once.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlir_shard {

// For each name the attribute of that name of each operation, by its number among the distinct ones; -1 for none.
struct AttributeColumns {
  std::vector<std::vector<std::int32_t>> columns;
  std::vector<MlirAttribute> distinct;
};

AttributeColumns attributeColumns(const Capi &capi, const std::vector<MlirOperation> &ops,
                                  const std::vector<std::string> &names);

// Where attributes are looked for: in discardable attributes called `name`, of operations and in the signatures of
// functions, and in all attributes of operations that have one of the names in `holders`.
struct AttributePlaces {
  std::string name;
  std::vector<std::string> holders;
};

// The distinct attributes in those places of `root` and below it.
std::vector<MlirAttribute> distinctAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places);

// Whether an attribute has been replaced, and the operations named in `holders` that have a new one of their own.
struct ReplacedAttributes {
  bool isAny = false;
  std::vector<MlirOperation> holders;
};

// Replaces the attributes in those places of `root` and below it by what `replaced` gives. It is asked once for each
// distinct one, in the order of the text.
ReplacedAttributes replaceAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places,
                                     const std::function<MlirAttribute(MlirAttribute)> &replaced);

// Removes the discardable attributes of `root` and below it that are called `name`, or that are of a dialect, which
// is its name with the dot.
void removeAttributes(const Capi &capi, MlirOperation root, const std::string &name);

} // namespace mlir_shard
