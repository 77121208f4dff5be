// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations whose results nothing uses.
#pragma once

#include "ir/capi.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir_shard {

// Whether a result of an operation has a use.
bool isUsed(const Capi &capi, MlirOperation op);

// Whether an operation under `root` may be dead: no result is used, and it is neither a terminator nor a symbol. Of
// sdy's operations only those of the names in `ofSdy` count.
bool mayHaveUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &ofSdy);

// Erases the operations under `root` with the names in `pure` that have no used result, the last one first, so that
// those that only such ones use go too; of those named in `others` the ones of which `isPure` says it. Returns whether
// there was one.
bool eraseUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &pure,
                 const std::vector<std::string> &others, const std::function<bool(MlirOperation)> &isPure);

} // namespace mlir_shard
