// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/merge.h"

#include "ir/below.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"
#include "rewriting/region_key.h"

#include <algorithm>
#include <unordered_map>

namespace mlir_shard {
namespace {

class Merger {
public:
  Merger(const Capi &capi, MlirContext context, const std::vector<std::string> &names,
         const std::function<MergedOperands(MlirOperation)> &merges)
      : capi(capi), merges(merges), signatures(capi, context, {}) {
    for (const std::string &name : names)
      wanted.insert(capi.mlirIdentifierGet(context, toStringRef(name)).pointer, 1);
  }

  void visit(MlirOperation op) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region))
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block;
           block = capi.mlirBlockGetNextInRegion(block)) {
        BlockWalk walk(capi, block);
        for (MlirOperation child = capi.mlirBlockGetFirstOperation(block), next; child; child = next) {
          walk.come(child);
          next = capi.mlirOperationGetNextInBlock(child);
          if (!merged(child, block))
            visit(child);
        }
        walk.end();
      }
  }

  // Returns the operations that others were merged into.
  const std::vector<MlirOperation> &kept() const { return ofOthers; }

private:
  // Replaces `op` by an equal operation that precedes it. Returns false if none exists.
  bool merged(MlirOperation op, MlirBlock block) {
    if (wanted.find(capi.mlirOperationGetName(op).pointer) == PointerMap::absent)
      return false;
    const std::int32_t signature = signatures.of(op);
    auto answer = answers.find(signature);
    if (answer == answers.end())
      answer = answers.emplace(signature, merges(op)).first;
    const MergedOperands &operands = answer->second;
    if (!operands || !std::all_of(operands->begin(), operands->end(), [&](std::intptr_t operand) {
          return results.find(capi.mlirOperationGetOperand(op, operand).pointer) != PointerMap::absent;
        }))
      return false;
    key.assign({asPointer(signature), block.pointer});
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      key.push_back(capi.mlirOperationGetOperand(op, i).pointer);
    appendRegions(capi, op, signatures, [](MlirOperation) { return false; }, key);
    const auto [kept, isNew] = firsts.emplace(key, op);
    if (isNew) {
      results.insert(capi.mlirOperationGetResult(op, 0).pointer, 1);
      return false;
    }
    capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(op, 0),
                                       capi.mlirOperationGetResult(kept->second, 0));
    capi.mlirOperationDestroy(op);
    if (isOfOthers.insert(kept->second.pointer, 1).second)
      ofOthers.push_back(kept->second);
    return true;
  }

  const Capi &capi;
  const std::function<MergedOperands(MlirOperation)> &merges;
  PointerMap wanted;
  Signatures signatures;
  std::unordered_map<std::int32_t, MergedOperands> answers; // By signature.
  PointerMap results;                                        // The results of operations that can be merged.
  std::unordered_map<std::vector<const void *>, MlirOperation, PointersHash> firsts;
  PointerMap isOfOthers;
  std::vector<MlirOperation> ofOthers; // The operations that others were merged into.
  std::vector<const void *> key;       // The key of the last operation that was looked up.
};

} // namespace

std::vector<MlirOperation> mergeEqual(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                const std::function<MergedOperands(MlirOperation)> &merges) {
  Merger merger(capi, capi.mlirOperationGetContext(root), names, merges);
  merger.visit(root);
  return merger.kept();
}

bool dropRepeated(const Capi &capi, const std::vector<Droppable> &ops) {
  std::unordered_map<std::vector<const void *>, MlirOperation, PointersHash> firsts;
  std::vector<const void *> key;
  std::vector<MlirOperation> kept;
  bool isChanged = false;
  const auto resultsOf = [&](MlirOperation op) { return capi.mlirOperationGetNumResults(op); };
  const auto firstEqual = [&](const Droppable &one) {
    key.assign({nullptr, reinterpret_cast<const void *>(static_cast<std::intptr_t>(one.group))});
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(one.op); i < count; ++i)
      key.push_back(capi.mlirOperationGetOperand(one.op, i).pointer);
    for (MlirOperation inner = one.op; inner; inner = capi.mlirOperationGetParentOperation(inner)) {
      key.front() = capi.mlirOperationGetBlock(inner).pointer;
      if (const auto found = key.front() ? firsts.find(key) : firsts.end(); found != firsts.end())
        return found->second;
    }
    key.front() = capi.mlirOperationGetBlock(one.op).pointer;
    return firsts.emplace(key, one.op).first->second;
  };
  for (const Droppable &one : ops) {
    const MlirOperation equal = one.group < 0 ? one.op : firstEqual(one);
    if (one.group != Droppable::identity && equal == one.op) {
      kept.push_back(one.op);
      continue;
    }
    for (std::intptr_t i = 0; i < resultsOf(one.op); ++i)
      capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(one.op, i),
                                         equal == one.op ? capi.mlirOperationGetOperand(one.op, i)
                                                         : capi.mlirOperationGetResult(equal, i));
    capi.mlirOperationDestroy(one.op);
    isChanged = true;
  }
  for (auto op = kept.rbegin(); op != kept.rend(); ++op) {
    std::intptr_t unused = 0;
    while (unused < resultsOf(*op) && !capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(*op, unused)))
      ++unused;
    if (unused > 0 && unused == resultsOf(*op)) {
      capi.mlirOperationDestroy(*op);
      isChanged = true;
    }
  }
  return isChanged;
}

} // namespace mlir_shard
