// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Numbers of operation signatures: most operations of a program equal another one except for their operands.
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

// Returns a number as a pointer, for use in a key of pointers.
inline const void *asPointer(std::intptr_t number) { return reinterpret_cast<const void *>(number); }

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int32_t> &numbers) const;
};

struct PointersHash {
  std::size_t operator()(const std::vector<const void *> &pointers) const;
};

// Sequences of pointers, numbered from 0 in the order of insertion; equal sequences have the same number.
class PointerSequences {
public:
  PointerSequences() : slots(256, -1) {}

  std::int32_t number(const std::vector<const void *> &sequence);
  std::size_t size() const { return entries.size(); }

private:
  // The hash of a sequence, and the end of its pointers, where the pointers of the next sequence start.
  struct Entry {
    std::uint32_t hash, end;
  };

  std::uint32_t begin(std::int32_t number) const { return number == 0 ? 0 : entries[number - 1].end; }
  void grow();

  std::vector<const void *> pointers; // The concatenated pointers of all sequences.
  std::vector<Entry> entries;
  std::vector<std::int32_t> slots; // Numbers of entries, by their hash; -1 for a free slot.
};

// Sets `types` to the types of the operands of an operation, a null pointer, the types of the results, and another null
// pointer.
void readTypes(const Capi &capi, MlirOperation op, std::vector<MlirType> &types);

// Returns whether operations of a name may have the same signature if their types differ only in sizes.
using AnySizes = std::function<bool(std::string_view name)>;

// The signatures of operations, numbered from 0: operations with equal names, types and attributes have the same
// signature.
class Signatures {
public:
  // Attributes named in `ignored` are ignored. If `anySizes`, which is called once for each operation name, returns
  // true, the sizes of dimensions are only compared as far as `appendSizePattern` distinguishes them.
  Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored, AnySizes anySizes = {});

  // Returns the signature of an operation.
  std::int32_t of(MlirOperation op) {
    readTypes(capi, op, types);
    return ofTypes(op, types);
  }

  // Returns the signature of an operation whose types are known, in the form of `readTypes`.
  std::int32_t ofTypes(MlirOperation op, const std::vector<MlirType> &known) {
    return number(op, capi.mlirOperationGetName(op).pointer, known);
  }

  // Returns the signature of an operation without its name. Signatures with and without names are distinct.
  std::int32_t ofAnyName(MlirOperation op) {
    readTypes(capi, op, types);
    return number(op, nullptr, types);
  }

  // Returns a hash of the ignored attributes of the operation whose signature was computed last.
  std::uint64_t lastIgnored() const { return ignored; }

private:
  // The known properties of the operations of one name.
  struct OfName {
    InherentNames::Names *known;
    std::vector<MlirIdentifier> identifiers; // The identifiers of the known names.
    bool isChecked;                          // Whether an operation was seen to have no others.
    bool anySizes;                           // Whether sizes are only compared by their pattern.
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
  PointerMap numbersOfNames; // The numbers of operation names, in `names`.
  std::vector<OfName> names;
  AnySizes anySizes;
  PointerSequences sequences;
  PointerSequences classes;                  // The sequences with sizes replaced by patterns.
  std::vector<std::int32_t> classOfSequence; // The class of each sequence.
  std::vector<const void *> key;             // The key of the last signature that was looked up.
  std::uint64_t ignored = 0;
  std::vector<MlirType> types; // The types of the last operation whose types were not known.
};

} // namespace mlir_shard
