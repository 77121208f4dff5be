// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/op_kinds.h"

#include "ir/below.h"

#include <algorithm>

namespace mlir_shard {
namespace {

// The marks in keys: for values whose definition is ignored, and between the parts of operations with regions.
enum KeyMark : std::int32_t { argumentMark = -1, outsideMark = -2, regionMark = -3, blockMark = -4, opMark = -5 };

bool isUsedOnce(const Capi &capi, MlirValue value) {
  const MlirOpOperand use = capi.mlirValueGetFirstUse(value);
  return use && !capi.mlirOpOperandGetNextUse(use);
}

template <typename Visit> void eachBlock(const Capi &capi, MlirOperation op, const Visit &visit) {
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region))
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block))
      visit(block);
}

} // namespace

OpKinds::OpKinds(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                 const std::vector<std::string> &ignored, bool neighbours)
    : capi(capi), ignored(ignored), signatures(capi, capi.mlirOperationGetContext(root), ignored) {
  const std::vector<const void *> wanted = identifiers(capi, root, names);
  std::unordered_map<Key, std::int32_t, NumbersHash> numbers;
  Key key;
  eachBelow(capi, root, false, [&](MlirOperation op) {
    if (!contains(wanted, capi.mlirOperationGetName(op).pointer))
      return;
    key.assign({contentOf(op)});
    if (neighbours)
      addNeighbours(op, key);
    const auto [found, isNew] = numbers.emplace(key, static_cast<std::int32_t>(numbers.size()));
    if (isNew)
      representatives.push_back(op);
    ops.push_back(op);
    kinds.push_back(found->second);
  });
}

std::int32_t OpKinds::contentOf(MlirOperation op) {
  if (const std::int32_t known = contents.find(op.pointer); known != PointerMap::absent)
    return known;
  Key key;
  PointerMap local;
  std::int32_t count = 0;
  if (capi.mlirOperationGetFirstRegion(op))
    define(op, local, count);
  addContent(op, local, key);
  const std::int32_t number =
      contentNumbers.emplace(std::move(key), static_cast<std::int32_t>(contentNumbers.size())).first->second;
  contents.set(op.pointer, number);
  return number;
}

// Numbers the values that are defined inside an operation.
void OpKinds::define(MlirOperation op, PointerMap &local, std::int32_t &count) const {
  eachBlock(capi, op, [&](MlirBlock block) {
    for (std::intptr_t i = 0, arguments = capi.mlirBlockGetNumArguments(block); i < arguments; ++i)
      local.set(capi.mlirBlockGetArgument(block, i).pointer, count++);
    for (MlirOperation inner = capi.mlirBlockGetFirstOperation(block); inner;
         inner = capi.mlirOperationGetNextInBlock(inner)) {
      for (std::intptr_t i = 0, results = capi.mlirOperationGetNumResults(inner); i < results; ++i)
        local.set(capi.mlirOperationGetResult(inner, i).pointer, count++);
      define(inner, local, count);
    }
  });
}

// Adds an operation and the contents of its regions to a key, with the numbers of the values defined inside the
// outermost operation.
void OpKinds::addContent(MlirOperation op, PointerMap &local, Key &key) {
  key.push_back(signatures.of(op));
  for (const std::string &name : ignored)
    key.push_back(static_cast<bool>(capi.mlirOperationGetAttributeByName(op, toStringRef(name))));
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region)) {
    key.push_back(regionMark);
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      key.push_back(blockMark);
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
        const auto [number, isNew] =
            types.insert(capi.mlirValueGetType(capi.mlirBlockGetArgument(block, i)).pointer, typeCount);
        typeCount += isNew;
        key.push_back(number);
      }
      for (MlirOperation inner = capi.mlirBlockGetFirstOperation(block); inner;
           inner = capi.mlirOperationGetNextInBlock(inner)) {
        key.push_back(opMark);
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(inner); i < count; ++i) {
          const std::int32_t number = local.find(capi.mlirOperationGetOperand(inner, i).pointer);
          key.push_back(number == PointerMap::absent ? outsideMark : number);
        }
        addContent(inner, local, key);
      }
    }
  }
}

void OpKinds::addNeighbours(MlirOperation op, Key &key) {
  const MlirBlock block = capi.mlirOperationGetBlock(op);
  const auto isBeside = [&](MlirOperation other) { return capi.mlirOperationGetBlock(other) == block; };
  std::vector<MlirValue> operands;
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
    const MlirValue operand = capi.mlirOperationGetOperand(op, i);
    const auto same = std::find(operands.begin(), operands.end(), operand) - operands.begin();
    operands.push_back(operand);
    key.push_back(static_cast<std::int32_t>(same));
    if (same < i)
      continue;
    if (capi.mlirValueIsABlockArgument(operand)) {
      key.push_back(argumentMark);
    } else {
      const MlirOperation definer = capi.mlirOpResultGetOwner(operand);
      std::intptr_t result = 0;
      while (!(capi.mlirOperationGetResult(definer, result) == operand))
        ++result;
      key.insert(key.end(), {contentOf(definer), static_cast<std::int32_t>(result), isBeside(definer)});
    }
    key.push_back(isUsedOnce(capi, operand));
  }
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i) {
    const MlirOpOperand use = capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(op, i));
    key.push_back(!use ? 0 : capi.mlirOpOperandGetNextUse(use) ? 2 : 1);
    if (key.back() != 1)
      continue;
    const MlirOperation user = capi.mlirOpOperandGetOwner(use);
    key.insert(key.end(), {contentOf(user), static_cast<std::int32_t>(capi.mlirOpOperandGetOperandNumber(use)),
                           isBeside(user)});
  }
}

std::vector<MlirOperation> operationsOfResults(const Capi &capi, MlirOperation root,
                                               const std::vector<std::string> &names,
                                               const std::vector<std::string> &definers, std::intptr_t count,
                                               bool once, const std::vector<std::string> &through) {
  const std::vector<const void *> wanted = identifiers(capi, root, names);
  const std::vector<const void *> wantedDefiners = identifiers(capi, root, definers);
  const std::vector<const void *> wantedThrough = identifiers(capi, root, through);
  std::vector<MlirOperation> found;
  std::vector<MlirValue> left;
  eachBelow(capi, root, false, [&](MlirOperation op) {
    if (!contains(wanted, capi.mlirOperationGetName(op).pointer) || capi.mlirOperationGetNumOperands(op) < count)
      return;
    const auto isResult = [&](std::intptr_t i) {
      left.assign({capi.mlirOperationGetOperand(op, i)});
      if (once && !isUsedOnce(capi, left.front()))
        return false;
      while (!left.empty()) {
        const MlirValue value = left.back();
        left.pop_back();
        if (capi.mlirValueIsABlockArgument(value))
          continue;
        const MlirOperation definer = capi.mlirOpResultGetOwner(value);
        const void *name = capi.mlirOperationGetName(definer).pointer;
        if (contains(wantedDefiners, name))
          return true;
        // A value with more uses would be visited for each of them.
        if (contains(wantedThrough, name) && isUsedOnce(capi, value))
          for (std::intptr_t j = 0, operands = capi.mlirOperationGetNumOperands(definer); j < operands; ++j)
            left.push_back(capi.mlirOperationGetOperand(definer, j));
      }
      return false;
    };
    bool isFound = count > 0;
    for (std::intptr_t i = 0; i < count; ++i)
      isFound = isFound && isResult(i);
    for (std::intptr_t i = 0, all = count ? 0 : capi.mlirOperationGetNumOperands(op); i < all; ++i)
      isFound = isFound || isResult(i);
    if (isFound)
      found.push_back(op);
  });
  return found;
}

} // namespace mlir_shard
