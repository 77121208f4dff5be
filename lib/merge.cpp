// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "merge.h"

#include "pointer_map.h"
#include "signatures.h"

#include <unordered_map>

namespace mlir_shard {
namespace {

class Merger {
public:
  Merger(const Capi &capi, MlirContext context, const std::vector<std::string> &names,
         const std::function<bool(MlirOperation)> &merges)
      : capi(capi), merges(merges), signatures(capi, context, {}) {
    for (const std::string &name : names)
      wanted.insert(capi.mlirIdentifierGet(context, toStringRef(name)).pointer, 1);
  }

  void visit(MlirOperation op) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region))
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block;
           block = capi.mlirBlockGetNextInRegion(block))
        for (MlirOperation child = capi.mlirBlockGetFirstOperation(block), next; child; child = next) {
          next = capi.mlirOperationGetNextInBlock(child);
          if (!merged(child, block))
            visit(child);
        }
  }

private:
  // Puts an equal operation before it in the place of `op`, where there is one.
  bool merged(MlirOperation op, MlirBlock block) {
    if (wanted.find(capi.mlirOperationGetName(op).pointer) == PointerMap::absent)
      return false;
    const std::int32_t signature = signatures.of(op);
    if (static_cast<std::size_t>(signature) == answers.size())
      answers.push_back(merges(op));
    if (!answers[signature])
      return false;
    key.assign({reinterpret_cast<const void *>(static_cast<std::intptr_t>(signature)), block.pointer});
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      key.push_back(capi.mlirOperationGetOperand(op, i).pointer);
    const auto [kept, isNew] = firsts.emplace(key, op);
    if (isNew)
      return false;
    capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(op, 0),
                                       capi.mlirOperationGetResult(kept->second, 0));
    capi.mlirOperationDestroy(op);
    return true;
  }

  const Capi &capi;
  const std::function<bool(MlirOperation)> &merges;
  PointerMap wanted;
  Signatures signatures;
  std::vector<bool> answers; // By signature.
  std::unordered_map<std::vector<const void *>, MlirOperation, PointersHash> firsts;
  std::vector<const void *> key; // What the last operation was looked up with.
};

} // namespace

void mergeEqual(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                const std::function<bool(MlirOperation)> &merges) {
  Merger(capi, capi.mlirOperationGetContext(root), names, merges).visit(root);
}

} // namespace mlir_shard
