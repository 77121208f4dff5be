// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by what operations are: most operations of a program agree with another one in all but their operands.
#pragma once

#include "capi.h"
#include "inherent_names.h"
#include "pointer_map.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mlir_shard {

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int32_t> &numbers) const;
};

struct PointersHash {
  std::size_t operator()(const std::vector<const void *> &pointers) const;
};

// Sequences of pointers, numbered from 0 in the order in which they come; equal ones have the same number.
class PointerSequences {
public:
  PointerSequences() : slots(256, -1) {}

  std::int32_t number(const std::vector<const void *> &sequence);
  std::size_t size() const { return entries.size(); }

private:
  struct Entry {
    std::size_t hash, begin, length;
  };

  void grow();

  std::vector<const void *> pointers; // Of all sequences, one behind the other.
  std::vector<Entry> entries;
  std::vector<std::int32_t> slots; // Entries by their hash, -1 where free.
};

// The signatures met so far, numbered from 0: operations that agree in name, types and attributes have the same.
class Signatures {
public:
  // Attributes named in `ignored` do not count.
  Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored);

  // The signature of an operation.
  std::int32_t of(MlirOperation op);

  std::size_t size() const { return sequences.size(); }

private:
  // What is known of the operations of one name.
  struct OfName {
    InherentNames::Names *known;
    std::vector<MlirIdentifier> identifiers; // Of its names.
    bool isChecked;                          // Whether an operation was seen to have no others.
  };

  void add(MlirIdentifier name, MlirAttribute attribute);
  void addAttributes(MlirOperation op, MlirIdentifier opName);
  std::intptr_t addInherent(MlirOperation op, const OfName &ofName);
  void learn(MlirOperation op, OfName &ofName, std::intptr_t count);
  OfName &ofName(MlirOperation op, MlirIdentifier opName);

  const Capi &capi;
  std::vector<const void *> ignoredNames;
  std::shared_ptr<InherentNames> inherent;
  PointerMap numbersOfNames; // Of the names of operations, in `names`.
  std::vector<OfName> names;
  PointerSequences sequences;
  std::vector<const void *> key; // What the last signature was looked up with.
};

} // namespace mlir_shard
