// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What verifiers look at in functions and their calls.
#pragma once

#include "ir/capi.h"
#include "ir/function_signature.h"

#include <string>
#include <vector>

namespace mlir_shard {

// Whether operands and results of a call have the types of a function type.
bool isCallOf(const Capi &capi, MlirType functionType, MlirOperation call);

// Whether a function has a name, and one block with arguments and a terminator of the types that it takes and returns,
// and lists of their attributes that are as long.
bool isNamedAndTypedAsItsBody(const Capi &capi, MlirOperation function);

// Keys of functions by their attributes: functions of equal keys are valid together.
class FunctionKeys {
public:
  using Key = std::vector<const void *>;

  // Attributes of arguments and results that are named in `ignored` do not count.
  FunctionKeys(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored);

  // Appends the attributes of the arguments or results.
  void addSide(MlirOperation function, Side side, Key &key) const;

  // All attributes that a dialect's verifier looks at, without the function's name and type.
  Key ofAttributes(MlirOperation function) const;

private:
  const Capi &capi;
  std::vector<const void *> ignoredNames;
};

} // namespace mlir_shard
