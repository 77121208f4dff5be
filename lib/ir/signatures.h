// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers by what operations are: most operations of a program agree with another one in all but their operands.
#pragma once

#include "ir/capi.h"
#include "ir/inherent_names.h"
#include "ir/pointer_map.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlir_shard {

// A number among the pointers of a key.
inline const void *asPointer(std::intptr_t number) { return reinterpret_cast<const void *>(number); }

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
  // The hash of a sequence, and where its pointers end: those of the next one begin there.
  struct Entry {
    std::uint32_t hash, end;
  };

  std::uint32_t begin(std::int32_t number) const { return number == 0 ? 0 : entries[number - 1].end; }
  void grow();

  std::vector<const void *> pointers; // Of all sequences, one behind the other.
  std::vector<Entry> entries;
  std::vector<std::int32_t> slots; // Entries by their hash, -1 where free.
};

// Sets `types` to the types of the operands of an operation, a null pointer, those of the results, and another one.
void readTypes(const Capi &capi, MlirOperation op, std::vector<MlirType> &types);

// Whether operations of a name may have the same signature where their types differ in sizes alone.
using AnySizes = std::function<bool(std::string_view name)>;

// The signatures met so far, numbered from 0: operations that agree in name, types and attributes have the same.
class Signatures {
public:
  // Attributes named in `ignored` do not count, and for operations of the names in `anySizes`, asked once for each, the
  // sizes of dimensions only as far as `appendSizePattern` goes by them.
  Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored, AnySizes anySizes = {});

  // The signature of an operation.
  std::int32_t of(MlirOperation op) {
    readTypes(capi, op, types);
    return ofTypes(op, types);
  }

  // The same where the types of the operation are known, as `readTypes` gives them.
  std::int32_t ofTypes(MlirOperation op, const std::vector<MlirType> &known) {
    return number(op, capi.mlirOperationGetName(op).pointer, known);
  }

  // The signature of an operation without its name. Signatures with and without names are distinct.
  std::int32_t ofAnyName(MlirOperation op) {
    readTypes(capi, op, types);
    return number(op, nullptr, types);
  }

  // A hash of the ignored attributes of the operation whose signature was asked for last.
  std::uint64_t lastIgnored() const { return ignored; }

private:
  // What is known of the operations of one name.
  struct OfName {
    InherentNames::Names *known;
    std::vector<MlirIdentifier> identifiers; // Of its names.
    bool isChecked;                          // Whether an operation was seen to have no others.
    bool anySizes;                           // Whether sizes count in part only.
  };

  std::int32_t number(MlirOperation op, const void *name, const std::vector<MlirType> &types);
  void add(MlirIdentifier name, MlirAttribute attribute);
  void addAttributes(MlirOperation op, OfName &ofName);
  std::int32_t classOf(std::int32_t exact, const OfName &ofName, const std::vector<MlirType> &types);
  std::intptr_t addInherent(MlirOperation op, const OfName &ofName);
  void learn(MlirOperation op, OfName &ofName, std::intptr_t count);
  OfName &ofName(MlirOperation op, MlirIdentifier opName);

  const Capi &capi;
  std::vector<const void *> ignoredNames;
  std::shared_ptr<InherentNames> inherent;
  PointerMap numbersOfNames; // Of the names of operations, in `names`.
  std::vector<OfName> names;
  AnySizes anySizes;
  PointerSequences sequences;
  PointerSequences classes;                  // Of the sequences that count as one.
  std::vector<std::int32_t> classOfSequence; // Its number, by that of the sequence.
  std::vector<const void *> key;             // What the last signature was looked up with.
  std::uint64_t ignored = 0;
  std::vector<MlirType> types; // Of the last operation whose types were not known.
};

} // namespace mlir_shard
