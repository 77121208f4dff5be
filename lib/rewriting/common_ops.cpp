// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/common_ops.h"

#include "ir/below.h"
#include "ir/mixed.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"
#include "rewriting/unused.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace mlir_shard {
namespace {

// Operations that later ones may be equal to, by hash. At the end of a region its operations are removed, the last first.
class KnownOps {
public:
  struct Entry {
    std::uint64_t hash;
    std::int64_t number; // Of equal operations, but for their operands.
    MlirOperation op;
  };

  std::size_t size() const { return entries.size(); }

  // The first entry of that hash for which `isEqual` holds; null if there is none.
  template <typename IsEqual> const Entry *find(std::uint64_t hash, const IsEqual &isEqual) const {
    for (std::size_t slot = hash & mask(); slots[slot] >= 0; slot = (slot + 1) & mask())
      if (const Entry &entry = entries[slots[slot]]; entry.hash == hash && isEqual(entry))
        return &entry;
    return nullptr;
  }

  void insert(const Entry &entry) {
    entries.push_back(entry);
    if (2 * entries.size() <= slots.size())
      return occupy(entries.size() - 1);
    slots.assign(2 * slots.size(), -1);
    for (std::size_t number = 0; number < entries.size(); ++number)
      occupy(number);
  }

  // Removes all but the first `count`. A slot is probed past later entries only by later ones, so none is left behind.
  void truncate(std::size_t count) {
    for (; entries.size() > count; entries.pop_back()) {
      std::size_t slot = entries.back().hash & mask();
      while (slots[slot] != static_cast<std::int32_t>(entries.size() - 1))
        slot = (slot + 1) & mask();
      slots[slot] = -1;
    }
  }

private:
  std::size_t mask() const { return slots.size() - 1; }

  void occupy(std::size_t number) {
    std::size_t slot = entries[number].hash & mask();
    while (slots[slot] >= 0)
      slot = (slot + 1) & mask();
    slots[slot] = static_cast<std::int32_t>(number);
  }

  std::vector<Entry> entries;
  std::vector<std::int32_t> slots = std::vector<std::int32_t>(64, -1);
};

class Elimination {
public:
  Elimination(const Capi &capi, MlirContext context, const PurityOfNames &purities,
              const PurityOfOperation &ofOperation)
      : capi(capi), ofOperation(ofOperation), signatures(capi, context, {}),
        unknownLocation(capi.mlirLocationUnknownGet(context)) {
    for (const auto &[name, ofName] : purities)
      ofNames.insert(capi.mlirIdentifierGet(context, toStringRef(name)).pointer, static_cast<std::int32_t>(ofName));
  }

  Eliminated run(MlirOperation root) {
    KnownOps known;
    visitRegions(root, known);
    kept.erase(std::remove_if(kept.begin(), kept.end(), [&](MlirOperation op) { return isInErased(op); }), kept.end());
    // Operands of an erased operation have uses until the end, as in the host's pass.
    for (const MlirOperation op : erased)
      capi.mlirOperationDestroy(op);
    return {!erased.empty(), std::move(kept)};
  }

private:
  void visitRegions(MlirOperation op, KnownOps &known) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      const std::size_t count = known.size();
      if (const MlirBlock block = capi.mlirRegionGetFirstBlock(region))
        eachInBlock(capi, block, [&](MlirOperation child) { visit(child, known); });
      known.truncate(count);
    }
  }

  void visit(MlirOperation op, KnownOps &known) {
    Purity purity = ofName(op);
    const bool hasRegions = static_cast<bool>(capi.mlirOperationGetFirstRegion(op));
    if (purity == Purity::Isolated) {
      KnownOps own;
      visitRegions(op, own);
      return;
    }
    if (hasRegions)
      visitRegions(op, known);
    if (purity == Purity::Impure)
      return;
    const std::int32_t signature = signatures.of(op);
    if (purity == Purity::Varies)
      purity = variedPurity(op, signature);
    if (purity == Purity::Impure)
      return;
    if (!isUsed(capi, op))
      erase(op, hasRegions);
    else if (purity != Purity::Removable)
      replaceOrInsert(op, hasRegions ? -1 - wholeNumber(op, signature) : signature,
                      purity == Purity::Commutative, known);
  }

  void erase(MlirOperation op, bool hasRegions) {
    erased.push_back(op);
    if (hasRegions)
      erasedWithRegions.insert(op.pointer);
  }

  bool isInErased(MlirOperation op) const {
    if (!erasedWithRegions.size())
      return false;
    while (op && erasedWithRegions.find(op.pointer) == PointerNumbers::absent)
      op = capi.mlirOperationGetParentOperation(op);
    return static_cast<bool>(op);
  }

  // `number` is below 0 for an operation with regions.
  void replaceOrInsert(MlirOperation op, std::int64_t number, bool isCommutative, KnownOps &known) {
    readOperands(op, isCommutative, operands);
    std::uint64_t hash = mixed(0, static_cast<std::uint64_t>(number));
    for (const void *operand : operands)
      hash = mixed(hash, operand);
    const KnownOps::Entry *equal = known.find(hash, [&](const KnownOps::Entry &entry) {
      if (entry.number != number)
        return false;
      readOperands(entry.op, isCommutative, others);
      return others == operands;
    });
    if (!equal) {
      known.insert({hash, number, op});
      return;
    }
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(op, i),
                                         capi.mlirOperationGetResult(equal->op, i));
    erase(op, number < 0);
    if (isKept.insert(equal->op.pointer).second)
      kept.push_back(equal->op);
    if (const MlirLocation location = capi.mlirOperationGetLocation(op);
        capi.mlirOperationGetLocation(equal->op) == unknownLocation && !(location == unknownLocation))
      capi.mlirOperationSetLocation(equal->op, location);
  }

  void readOperands(MlirOperation op, bool isCommutative, std::vector<const void *> &found) const {
    found.clear();
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      found.push_back(capi.mlirOperationGetOperand(op, i).pointer);
    if (isCommutative)
      std::sort(found.begin(), found.end());
  }

  Purity ofName(MlirOperation op) const {
    const std::int32_t found = ofNames.find(capi.mlirOperationGetName(op).pointer);
    if (found == PointerMap::absent)
      throw std::invalid_argument("no purity is given for an operation");
    return static_cast<Purity>(found);
  }

  // The purity of an operation, which depends on its signature and on those in its regions, and not on operands.
  Purity variedPurity(MlirOperation op, std::int32_t signature) {
    key.assign({asPointer(signature)});
    eachBelow(capi, op, false, [&](MlirOperation inner) { key.push_back(asPointer(signatures.of(inner))); });
    const auto number = static_cast<std::size_t>(contents.number(key));
    if (number == varied.size())
      varied.push_back(ofOperation(op));
    return varied[number];
  }

  // The number of operations with equal regions, which are equal if their operands are.
  std::int64_t wholeNumber(MlirOperation op, std::int32_t signature) {
    key.assign({asPointer(signature)});
    PointerMap inner;
    std::int32_t count = 0;
    addRegions(op, inner, count);
    return wholes.number(key);
  }

  // Adds what is in the regions of an operation to the key; values defined there are numbered.
  void addRegions(MlirOperation op, PointerMap &inner, std::int32_t &valueCount) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      key.push_back(asPointer(-1));
      const MlirBlock block = capi.mlirRegionGetFirstBlock(region);
      if (!block)
        continue;
      key.push_back(asPointer(-2));
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
        const MlirValue argument = capi.mlirBlockGetArgument(block, i);
        key.push_back(capi.mlirValueGetType(argument).pointer);
        inner.insert(argument.pointer, valueCount++);
      }
      eachInBlock(capi, block, [&](MlirOperation child) { addInner(child, inner, valueCount); });
    }
  }

  void addInner(MlirOperation op, PointerMap &inner, std::int32_t &valueCount) {
    key.push_back(asPointer(signatures.of(op)));
    const auto first = static_cast<std::ptrdiff_t>(key.size());
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
      const void *operand = capi.mlirOperationGetOperand(op, i).pointer;
      const std::int32_t known = inner.find(operand);
      key.push_back(known == PointerMap::absent ? operand : asPointer(known));
    }
    if (ofName(op) == Purity::Commutative)
      std::sort(key.begin() + first, key.end());
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      inner.insert(capi.mlirOperationGetResult(op, i).pointer, valueCount++);
    addRegions(op, inner, valueCount);
  }

  const Capi &capi;
  const PurityOfOperation &ofOperation;
  Signatures signatures;
  MlirLocation unknownLocation;
  PointerMap ofNames;
  PointerSequences contents, wholes;
  std::vector<Purity> varied; // By number of the contents.
  std::vector<MlirOperation> erased, kept;
  PointerNumbers erasedWithRegions, isKept;
  std::vector<const void *> key, operands, others; // Of the operation visited last.
};

} // namespace

Eliminated eliminateCommonOps(const Capi &capi, MlirOperation root, const PurityOfNames &purities,
                              const PurityOfOperation &ofOperation) {
  return Elimination(capi, capi.mlirOperationGetContext(root), purities, ofOperation).run(root);
}

} // namespace mlir_shard
