// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The names of the attributes that operations keep as properties.
#pragma once

#include "ir/capi.h"

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
  // Returns a list of names with all that operations of a name can have, or none where they are not known.
  using Declared = std::function<std::optional<std::vector<std::string>>(const std::string &opName)>;

  struct Names {
    std::vector<std::string> names;
    bool areAll; // Operations of the name have no others.
  };

  explicit InherentNames(Declared declared = nullptr) : declared(std::move(declared)) {}

  // The names of operations that are called as `op` is, to which others that are found may be added.
  Names &of(const Capi &capi, MlirOperation op) {
    std::string name(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op))));
    const auto found = known.find(name);
    if (found != known.end())
      return found->second;
    Names names{{}, false};
    if (declared && capi.mlirOperationHasInherentAttributeByName)
      if (const auto all = declared(name)) {
        names.areAll = true;
        for (const std::string &one : *all)
          if (capi.mlirOperationHasInherentAttributeByName(op, toStringRef(one)))
            names.names.push_back(one);
      }
    return known.emplace(std::move(name), std::move(names)).first->second;
  }

private:
  Declared declared;
  std::map<std::string, Names> known;
};

} // namespace mlir_shard
