// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Inlining of calls. Upstream's inliner rejects all operations of dialects that are defined at run time.
#pragma once

#include "ir/capi.h"

#include <vector>

namespace mlir_shard {

// Replaces `call` by a copy of the operations in the only block of `function`, with the operands of the call for the
// block arguments and the operands of the terminator for the results. Returns the top-level copies and the users of the
// results, except for calls, which may be inlined next. As in upstream's inliner, the locations of the copies become
// call sites of the location in the function, called from the location of the call.
std::vector<MlirOperation> inlineBody(const Capi &capi, MlirOperation call, MlirOperation function);

} // namespace mlir_shard
