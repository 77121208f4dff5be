// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The names of the attributes that operations store as properties.
#pragma once

#include "ir/capi.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlir_shard {

// The names of inherent attributes by operation name. To count or list the attributes of an operation that stores some
// of them as properties, the host creates a dictionary of all attributes each time, which takes longer than reading the
// rest of the operation. If the names are known, each attribute is looked up by its name.
class InherentNames {
public:
  // Returns a list that contains all names that operations called `opName` can have; nullopt if they are not known. The
  // search may take long if there are `many` such operations.
  using Declared = std::function<std::optional<std::vector<std::string>>(const std::string &opName, bool many)>;

  struct Names {
    std::vector<std::string> names;
    bool areAll; // Whether operations of the name have no others.
    int reads = 0; // The number of operations that were read while not all names are known.
  };

  explicit InherentNames(Declared declared = nullptr) : declared(std::move(declared)) {}

  // Returns the names for operations called like `op`; callers may add other names.
  Names &of(const Capi &capi, MlirOperation op) {
    std::string name(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op))));
    const auto found = known.find(name);
    if (found != known.end())
      return found->second;
    Names names{{}, false};
    declare(capi, op, name, false, names);
    return known.emplace(std::move(name), std::move(names)).first->second;
  }

  // Counts a read of an operation of which not all names are known. Returns whether they have become known.
  bool read(const Capi &capi, MlirOperation op, Names &names) const {
    if (names.reads > manyReads || ++names.reads <= manyReads)
      return false;
    declare(capi, op, std::string(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op)))), true, names);
    return names.areAll;
  }

private:
  // The number of reads that takes as long as loading the wrappers of a dialect.
  static constexpr int manyReads = 1000;

  void declare(const Capi &capi, MlirOperation op, const std::string &name, bool many, Names &names) const {
    if (!declared || !capi.mlirOperationHasInherentAttributeByName)
      return;
    const std::optional<std::vector<std::string>> all = declared(name, many);
    if (!all)
      return;
    names.areAll = true;
    for (const std::string &one : *all)
      if (std::find(names.names.begin(), names.names.end(), one) == names.names.end() &&
          capi.mlirOperationHasInherentAttributeByName(op, toStringRef(one)))
        names.names.push_back(one);
  }

  Declared declared;
  std::map<std::string, Names> known;
};

} // namespace mlir_shard
