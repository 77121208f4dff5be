// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Inlining of calls. Upstream's inliner refuses every operation of a dialect that is defined at run time.
#pragma once

#include "ir/capi.h"

#include <vector>

namespace mlir_shard {

// Replaces `call` by a copy of the operations in the only block of `function`, whose arguments become the operands of
// the call and whose terminator gives its results. Returns the copies, but for those inside others, and the users of the
// results; calls, which may be inlined next, are left out. As with upstream's inliner the location of what is copied
// becomes a call site: where it is in the function, called from where the call is.
std::vector<MlirOperation> inlineBody(const Capi &capi, MlirOperation call, MlirOperation function);

} // namespace mlir_shard
