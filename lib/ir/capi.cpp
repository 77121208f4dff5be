// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/capi.h"

#include "ir/block_order.h"

#include <dlfcn.h>

#include <memory>
#include <stdexcept>

namespace mlir_shard {

Capi::Capi(const std::string &path) {
  // The library stays loaded: the bindings hold it for the lifetime of the process.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error("cannot open MLIR's C API: " + std::string(dlerror()));
#define MLIR_SHARD_LOOK_UP(RESULT, NAME, PARAMETERS)                                                                   \
  NAME = reinterpret_cast<RESULT(*) PARAMETERS>(dlsym(library, #NAME));
#define MLIR_SHARD_REQUIRE(RESULT, NAME, PARAMETERS)                                                                   \
  if (!NAME)                                                                                                           \
    throw std::runtime_error("MLIR's C API in " + path + " lacks " #NAME);
  MLIR_SHARD_CAPI(MLIR_SHARD_LOOK_UP)
  MLIR_SHARD_OPTIONAL_CAPI(MLIR_SHARD_LOOK_UP)
  MLIR_SHARD_CAPI(MLIR_SHARD_REQUIRE)
#undef MLIR_SHARD_REQUIRE
#undef MLIR_SHARD_LOOK_UP
  blockOrders = std::make_shared<BlockOrders>();
}

} // namespace mlir_shard
