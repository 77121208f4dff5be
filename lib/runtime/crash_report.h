// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a tool says when a signal such as SIGSEGV ends it inside MLIR: what was at work, and where in the input.
#pragma once

#include <string>

namespace mlir_shard {

// Has this process, when a signal of a broken program comes, print one line on standard error, remove its temporary
// folders and exit with `status`. The process never goes on. Idempotent.
void reportCrashes(const std::string &tool, int status);

bool reportsCrashes();

// States what is at work: `place` is what a diagnostic begins with, as "in.mlir:3:1", empty where it is not known.
void setAtWork(const std::string &place, const std::string &work);

// Adds or takes back a folder to remove. Of more than a few, the rest stay.
void removeAtCrash(const std::string &folder);
void keepAtCrash(const std::string &folder);

} // namespace mlir_shard
