// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Verification of operations with regions, and of the operations in their regions.

#include "ir/below.h"
#include "verification/verified_ops.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mlir_shard {

// The largest size of the key of an operation with all operations in its regions.
static constexpr std::size_t mostInWhole = 1000;

// Sets `key` to the properties that the verifier of a container checks. Returns false if a region has more than one
// block.
bool VerifiedOps::containerKey(MlirOperation op, const Name &name, const Around &around, std::int32_t signature,
                               Key &key) {
  key = {asPointer(signature), asPointer(around.name)};
  if (name.isFunction)
    for (const Side side : bothSides) {
      functionKeys.addSide(op, side, key);
      key.push_back(nullptr);
    }
  if (name.isManual)
    key.insert(key.end(), {symbols.others, around.manual});
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region)) {
    key.push_back(nullptr);
    const MlirBlock block = capi.mlirRegionGetFirstBlock(region);
    if (!block)
      continue;
    if (capi.mlirBlockGetNextInRegion(block))
      return false;
    for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
      key.push_back(capi.mlirValueGetType(capi.mlirBlockGetArgument(block, i)).pointer);
    key.push_back(nullptr);
    // A module's last operation need not be a terminator.
    const MlirOperation last = name.isModule ? MlirOperation{} : lastInBlock(capi, block);
    key.push_back(asPointer(last ? signatures.of(last) : -1));
  }
  return true;
}

VerifiedOps::Verdict VerifiedOps::visitBodies(MlirOperation op, const Name &name, const Around &around,
                                              std::size_t place) {
  // A nested module has its own symbols.
  if (name.isModule && around.block)
    return Verdict::Unknown;
  const std::int32_t signature = signatures.of(op);
  Key key;
  if (!containerKey(op, name, around, signature, key))
    return Verdict::Unknown;
  const void *manual = manualInside(op, around.manual, signature);
  if (accepting) {
    if (containers.insert(std::move(key)).second && name.isOfSdy)
      unverified.push_back(op);
    if (name.isFunction)
      functions.insert(functionKeys.ofAttributes(op));
  } else if (!containers.count(key)) {
    if (name.isFunction && isNamedAndTypedAsItsBody(capi, op) && functions.count(functionKeys.ofAttributes(op)))
      containers.insert(std::move(key));
    else if (name.isModule || name.isFunction)
      return Verdict::Unknown;
    else if (const Verdict verdict = known(containers, std::move(key), op); verdict != Verdict::Valid)
      return verdict;
  }
  changed[place].isInside = false;
  if (!remembers && !accepting)
    visitedBodies.insert(op.pointer);
  std::optional<OpContents::Inside> isolated;
  if (name.isIsolated && remembers)
    isolated.emplace(contents, op);
  std::unordered_set<const void *> symbols;
  Verdict verdict = Verdict::Valid;
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region && verdict == Verdict::Valid;
       region = capi.mlirRegionGetNextInOperation(region)) {
    const MlirBlock block = capi.mlirRegionGetFirstBlock(region);
    if (!block)
      continue;
    const Around inside{signature, name.number, manual, block};
    eachInBlock(capi, block, [&](MlirOperation child) {
      if (name.isModule) {
        const MlirAttribute symbol = capi.mlirOperationGetAttributeByName(child, toStringRef("sym_name"));
        if (symbol && !symbols.insert(symbol.pointer).second) {
          verdict = Verdict::Unknown;
          return false;
        }
      }
      verdict = visit(child, inside, !name.isModule && !capi.mlirOperationGetNextInBlock(child));
      return verdict == Verdict::Valid;
    });
  }
  return verdict;
}

// Appends to `key` the operation and all operations in its regions: the signatures, the types of block arguments, and
// the number of the value that each operand uses. Returns false if the verifier of one of them checks more than that,
// or if there are too many.
bool VerifiedOps::wholeKey(MlirOperation op, Key &key) {
  // Mostly the arguments and results in the body of a reduction; they are few enough for a linear search.
  std::vector<const void *> inner;
  std::vector<MlirOperation> left{op};
  while (!left.empty()) {
    const MlirOperation one = left.back();
    left.pop_back();
    const Kind kind = nameOf(one).kind;
    if ((kind != Kind::Plain && kind != Kind::OfParent) || key.size() > mostInWhole)
      return false;
    key.push_back(asPointer(signatures.of(one)));
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(one); i < count; ++i) {
      const MlirValue operand = capi.mlirOperationGetOperand(one, i);
      const auto found = std::find(inner.begin(), inner.end(), operand.pointer);
      if (found == inner.end() && !dominates(operand, op))
        return false;
      key.push_back(asPointer(found == inner.end() ? -1 : found - inner.begin()));
    }
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(one); i < count; ++i)
      inner.push_back(capi.mlirOperationGetResult(one, i).pointer);
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(one); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      const MlirBlock block = capi.mlirRegionGetFirstBlock(region);
      if (!block || capi.mlirBlockGetNextInRegion(block))
        return false;
      key.push_back(nullptr);
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
        const MlirValue argument = capi.mlirBlockGetArgument(block, i);
        key.push_back(capi.mlirValueGetType(argument).pointer);
        inner.push_back(argument.pointer);
      }
      std::vector<MlirOperation> inside;
      for (MlirOperation child = capi.mlirBlockGetFirstOperation(block); child;
           child = capi.mlirOperationGetNextInBlock(child))
        inside.push_back(child);
      left.insert(left.end(), inside.rbegin(), inside.rend());
      key.push_back(asPointer(static_cast<std::intptr_t>(inside.size())));
    }
  }
  return true;
}

VerifiedOps::Verdict VerifiedOps::visitWhole(MlirOperation op, const Around &around) {
  Key key{asPointer(around.name)};
  if (!wholeKey(op, key))
    return Verdict::Unknown;
  return known(wholes, std::move(key), op);
}

} // namespace mlir_shard
