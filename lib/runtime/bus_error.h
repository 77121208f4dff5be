// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The clean-up of shared memory when its file system has no space left: MPI maps files that are larger than the space,
// and the first access beyond it ends the process by SIGBUS.
#pragma once

#include <string>

namespace mlir_shard {

// Installs a handler of SIGBUS that prints an error if the file system of `folder` is full, and removes the files that
// this process has mapped and whose paths begin with `prefix`. Then the signal ends the process.
void removeMappedAtBusError(const std::string &folder, const std::string &prefix);

} // namespace mlir_shard
