// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The parts of functions and calls that verifiers look at.
#pragma once

#include "ir/capi.h"
#include "ir/function_signature.h"

#include <string>
#include <vector>

namespace mlir_shard {

// Returns whether the operands and results of a call have the types of a function type.
bool isCallOf(const Capi &capi, MlirType functionType, MlirOperation call);

// Returns whether a function has a name and a single block, whose arguments and terminator match the function type, and
// whether the lists of argument and result attributes have matching lengths.
bool isNamedAndTypedAsItsBody(const Capi &capi, MlirOperation function);

// Keys of functions by their attributes: functions with equal keys have the same validity.
class FunctionKeys {
public:
  using Key = std::vector<const void *>;

  // Attributes of arguments and results that are named in `ignored` are left out.
  FunctionKeys(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored);

  // Appends the attributes of the arguments or results to `key`.
  void addSide(MlirOperation function, Side side, Key &key) const;

  // Returns all attributes that a dialect's verifier checks, without the function's name and type.
  Key ofAttributes(MlirOperation function) const;

private:
  const Capi &capi;
  std::vector<const void *> ignoredNames;
};

} // namespace mlir_shard
