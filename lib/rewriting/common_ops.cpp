// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/common_ops.h"

#include "ir/below.h"
#include "ir/mixed.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"
#include "rewriting/region_key.h"
#include "rewriting/unused.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace mlir_shard {
namespace {

// The visited operations that later operations may equal, by hash. At the end of a region its operations are removed,
// last first.
class KnownOps {
public:
  struct Entry {
    std::uint64_t hash;
    std::int64_t number; // Equal for operations that are equal if their operands are.
    MlirOperation op;
  };

  std::size_t size() const { return entries.size(); }

  // Returns the first entry with this hash for which `isEqual` returns true; null if none exists.
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

  // Removes all but the first `count` entries. Entries are only probed past the slots of earlier entries, so the
  // remaining entries stay reachable.
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
    return {isAny, std::move(kept)};
  }

private:
  void visitRegions(MlirOperation op, KnownOps &known) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      const std::size_t count = known.size(), outer = erased.size();
      if (const MlirBlock block = capi.mlirRegionGetFirstBlock(region))
        eachInBlock(capi, block, [&](MlirOperation child) { visit(child, known); });
      known.truncate(count);
      // The enclosing operation is compared without the erased operations.
      for (; erased.size() > outer; erased.pop_back())
        capi.mlirOperationDestroy(erased.back());
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
    const std::size_t keptBefore = kept.size();
    if (hasRegions)
      visitRegions(op, known);
    if (purity == Purity::Impure)
      return;
    const std::int32_t signature = signatures.of(op);
    if (purity == Purity::Varies)
      purity = variedPurity(op, signature);
    if (purity == Purity::Impure)
      return;
    if (isUsed(capi, op) &&
        (purity == Purity::Removable || !isReplaced(op, hasRegions ? -1 - wholeNumber(op, signature) : signature,
                                                    purity == Purity::Commutative, known)))
      return;
    if (hasRegions)
      dropInside(op, keptBefore);
    erased.push_back(op);
    isAny = true;
  }

  // Drops the operations in the regions of an erased operation from the operations that have replaced others since
  // `keptBefore`.
  void dropInside(MlirOperation erasedOp, std::size_t keptBefore) {
    const auto isInside = [&](MlirOperation op) {
      while (op && !(op == erasedOp))
        op = capi.mlirOperationGetParentOperation(op);
      return static_cast<bool>(op);
    };
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(keptBefore);
    kept.erase(std::remove_if(begin, kept.end(), isInside), kept.end());
  }

  // Replaces the uses of an operation by an equal operation. If none exists, adds the operation to `known`.
  bool isReplaced(MlirOperation op, std::int64_t number, bool isCommutative, KnownOps &known) {
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
      return false;
    }
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(op, i),
                                         capi.mlirOperationGetResult(equal->op, i));
    if (isKept.insert(equal->op.pointer).second)
      kept.push_back(equal->op);
    if (const MlirLocation location = capi.mlirOperationGetLocation(op);
        capi.mlirOperationGetLocation(equal->op) == unknownLocation && !(location == unknownLocation))
      capi.mlirOperationSetLocation(equal->op, location);
    return true;
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

  // Returns the purity of an operation, which depends on its signature and on those in its regions, and not on
  // operands.
  Purity variedPurity(MlirOperation op, std::int32_t signature) {
    key.assign({asPointer(signature)});
    eachBelow(capi, op, false, [&](MlirOperation inner) { key.push_back(asPointer(signatures.of(inner))); });
    const auto number = static_cast<std::size_t>(contents.number(key));
    if (number == varied.size())
      varied.push_back(ofOperation(op));
    return varied[number];
  }

  // Returns the number of an operation's signature and regions: operations with the same number are equal if their
  // operands are.
  std::int64_t wholeNumber(MlirOperation op, std::int32_t signature) {
    key.assign({asPointer(signature)});
    appendRegions(capi, op, signatures, isCommutative, key);
    return wholes.number(key);
  }

  const Capi &capi;
  const PurityOfOperation &ofOperation;
  const std::function<bool(MlirOperation)> isCommutative = [this](MlirOperation op) {
    return ofName(op) == Purity::Commutative;
  };
  Signatures signatures;
  MlirLocation unknownLocation;
  PointerMap ofNames;
  PointerSequences contents, wholes;
  std::vector<Purity> varied; // By number of the contents.
  std::vector<MlirOperation> erased; // The operations in the regions that are being visited.
  bool isAny = false;
  std::vector<MlirOperation> kept;
  PointerNumbers isKept;
  std::vector<const void *> key, operands, others; // The data of the operation visited last.
};

} // namespace

Eliminated eliminateCommonOps(const Capi &capi, MlirOperation root, const PurityOfNames &purities,
                              const PurityOfOperation &ofOperation) {
  return Elimination(capi, capi.mlirOperationGetContext(root), purities, ofOperation).run(root);
}

} // namespace mlir_shard
