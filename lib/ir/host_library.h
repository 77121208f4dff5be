// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The library of MLIR that the host's Python bindings use.
#pragma once

#include "ir/capi.h"
#include "ir/capsules.h"
#include "ir/inherent_names.h"

#include <memory>
#include <string>
#include <utility>

namespace mlir_shard {

// The library and the state that all its users share, such as the names of attributes that a walk has found.
struct HostLibrary {
  HostLibrary(const std::string &path, const std::string &capsulePrefix, InherentNames::Declared declared)
      : capi(path), capsules(capsulePrefix) {
    capi.inherentNames = std::make_shared<InherentNames>(std::move(declared));
  }

  Capi capi;
  Capsules capsules;
};

using SharedLibrary = std::shared_ptr<const HostLibrary>;

} // namespace mlir_shard
