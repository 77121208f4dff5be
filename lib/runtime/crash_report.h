// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The message of a tool that a signal such as SIGSEGV ends inside MLIR: the current pass and the place in the input.
#pragma once

#include <string>

namespace mlir_shard {

// Installs a handler of the signals of broken programs that prints one line on standard error, removes the temporary
// folders of the process and exits with `status`. The process never continues. Idempotent.
void reportCrashes(const std::string &tool, int status);

bool reportsCrashes();

// Sets the current work: `place` is the beginning of a diagnostic, such as "in.mlir:3:1", or empty if it is unknown.
void setAtWork(const std::string &place, const std::string &work);

// Add and remove a folder to delete in a crash. Only a few folders are stored; others are not deleted.
void removeAtCrash(const std::string &folder);
void keepAtCrash(const std::string &folder);

} // namespace mlir_shard
