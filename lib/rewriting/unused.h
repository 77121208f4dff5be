// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations with unused results.
#pragma once

#include "ir/capi.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir_shard {

// Returns whether a result of an operation has a use.
bool isUsed(const Capi &capi, MlirOperation op);

// Returns whether an operation under `root` may be dead: no result is used, and it is neither a terminator nor a
// symbol. Operations of sdy only count if their names are in `ofSdy`.
bool mayHaveUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &ofSdy);

// Erases the operations under `root` without used results that have a name in `pure`, or a name in `others` and
// `isPure` returns true, in reverse order, so that operations used only by erased ones are erased too. Returns whether
// any was erased.
bool eraseUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &pure,
                 const std::vector<std::string> &others, const std::function<bool(MlirOperation)> &isPure);

} // namespace mlir_shard
