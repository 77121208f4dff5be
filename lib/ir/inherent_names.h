// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The names of the attributes that operations keep as properties.
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

// To count or to list the attributes of an operation that keeps some of them as properties, the host makes a dictionary
// of all of them each time, which takes longer than all else that is read of an operation. With the names known, each
// attribute is asked for by its name.
class InherentNames {
public:
  // Returns a list of names with all that operations of a name can have, or none where they are not known. It may take
  // long to find them where there are `many` such operations.
  using Declared = std::function<std::optional<std::vector<std::string>>(const std::string &opName, bool many)>;

  struct Names {
    std::vector<std::string> names;
    bool areAll; // Operations of the name have no others.
    int reads = 0; // Of operations, as long as they are not all.
  };

  explicit InherentNames(Declared declared = nullptr) : declared(std::move(declared)) {}

  // The names of operations that are called as `op` is, to which others that are found may be added.
  Names &of(const Capi &capi, MlirOperation op) {
    std::string name(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op))));
    const auto found = known.find(name);
    if (found != known.end())
      return found->second;
    Names names{{}, false};
    declare(capi, op, name, false, names);
    return known.emplace(std::move(name), std::move(names)).first->second;
  }

  // Counts a reading of an operation whose names are not all known; whether they have become known.
  bool read(const Capi &capi, MlirOperation op, Names &names) const {
    if (names.reads > manyReads || ++names.reads <= manyReads)
      return false;
    declare(capi, op, std::string(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op)))), true, names);
    return names.areAll;
  }

private:
  // What takes as long as to load the wrappers of a dialect.
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
