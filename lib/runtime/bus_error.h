// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a rank leaves in shared memory when the file system of that has no space left: MPI maps files larger than what
// there is, and the first access beyond that ends the process by SIGBUS.
#pragma once

#include <string>

namespace mlir_shard {

// Has this process, when SIGBUS comes, state on standard error that the file system of `folder` is full, if it is, and
// remove the files in it that this process has mapped and whose paths begin with `prefix`. Then it ends by the signal.
void removeMappedAtBusError(const std::string &folder, const std::string &prefix);

} // namespace mlir_shard
