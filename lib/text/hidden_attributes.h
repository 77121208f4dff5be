// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Attributes that are never printed, because printing them takes long.
#pragma once

#include "ir/capi.h"

#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

// The names of attributes by the names of operations.
using AttributesOfOperations = std::vector<std::pair<std::string, std::vector<std::string>>>;

// Removes attributes from an operation and all operations below it for the lifetime of this object.
class HiddenAttributes {
public:
  HiddenAttributes(const Capi &capi, MlirOperation root, const AttributesOfOperations &hidden);
  HiddenAttributes(const HiddenAttributes &) = delete;
  HiddenAttributes &operator=(const HiddenAttributes &) = delete;
  ~HiddenAttributes();

private:
  struct Removed {
    MlirOperation op;
    MlirStringRef name;
    MlirAttribute attribute;
  };

  const Capi &capi;
  std::vector<Removed> removed;
};

} // namespace mlir_shard
