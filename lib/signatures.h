// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by what operations are: most operations of a program agree with another one in all but their operands.
#pragma once

#include "capi.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int32_t> &numbers) const;
};

struct PointersHash {
  std::size_t operator()(const std::vector<const void *> &pointers) const;
};

// The signatures met so far, numbered from 0: operations that agree in name, types and attributes have the same.
class Signatures {
public:
  // Attributes named in `ignored` do not count.
  Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored);

  // The signature of an operation.
  std::int32_t of(MlirOperation op);

  std::size_t size() const { return numbers.size(); }

private:
  void add(MlirIdentifier name, MlirAttribute attribute);
  void addAttributes(MlirOperation op);
  std::intptr_t addInherent(MlirOperation op, const std::vector<MlirIdentifier> &names);

  const Capi &capi;
  std::vector<const void *> ignoredNames;
  // By the name of an operation the names of attributes that one of them keeps as properties.
  std::unordered_map<const void *, std::vector<MlirIdentifier>> inherentNames;
  std::unordered_map<std::vector<const void *>, std::int32_t, PointersHash> numbers;
  std::vector<const void *> key; // What the last signature was looked up with.
};

} // namespace mlir_shard
