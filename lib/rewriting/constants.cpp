// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/constants.h"

#include "ir/below.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"

#include <unordered_map>

namespace mlir_shard {
namespace {

class ConstantHoisting {
public:
  ConstantHoisting(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                   const std::vector<std::string> &isolated)
      : capi(capi), constants(identifiers(capi, root, names)), isolated(identifiers(capi, root, isolated)),
        unknownLocation(capi.mlirLocationUnknownGet(capi.mlirOperationGetContext(root))) {}

  bool run(MlirOperation root) {
    visitIsolated(root);
    return isChanged;
  }

private:
  // A region of an isolated operation; constants move to its front.
  struct Scope {
    MlirBlock entry;
    std::unordered_map<std::vector<const void *>, MlirOperation, PointersHash> firsts;
    PointerMap kept;
  };

  void visitIsolated(MlirOperation op) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      Scope scope;
      scope.entry = capi.mlirRegionGetFirstBlock(region);
      visitRegion(region, scope);
    }
  }

  void visitRegion(MlirRegion region, Scope &scope) {
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      MlirOperation before; // The last operation before the next one.
      for (MlirOperation op = capi.mlirBlockGetFirstOperation(block), next; op; op = next) {
        next = capi.mlirOperationGetNextInBlock(op);
        const void *name = capi.mlirOperationGetName(op).pointer;
        if (!contains(constants, name)) {
          visitRegions(op, name, scope);
          before = op;
        } else if (staysInPlace(op, block, before, scope)) {
          before = op;
        }
      }
    }
  }

  void visitRegions(MlirOperation op, const void *name, Scope &scope) {
    if (contains(isolated, name))
      return visitIsolated(op);
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region))
      visitRegion(region, scope);
  }

  // Merges or moves a constant, unless it is already at the front. Returns whether it stays in place.
  bool staysInPlace(MlirOperation op, MlirBlock block, MlirOperation before, Scope &scope) {
    const MlirValue result = capi.mlirOperationGetResult(op, 0);
    const MlirAttribute value = capi.mlirOperationGetAttributeByName(op, toStringRef("value"));
    const auto [found, isNew] = scope.firsts.emplace(
        std::vector<const void *>{capi.mlirOperationGetName(op).pointer, value.pointer,
                                  capi.mlirValueGetType(result).pointer},
        op);
    if (!isNew) {
      capi.mlirValueReplaceAllUsesOfWith(result, capi.mlirOperationGetResult(found->second, 0));
      capi.mlirOperationSetLocation(found->second, unknownLocation);
      capi.mlirOperationDestroy(op);
      isChanged = true;
      return false;
    }
    scope.kept.insert(op.pointer, 1);
    const MlirOperation front = capi.mlirBlockGetFirstOperation(scope.entry);
    const bool isInEntry = block == scope.entry;
    if (isInEntry && (op == front || (before && scope.kept.find(before.pointer) != PointerMap::absent)))
      return true;
    capi.mlirOperationMoveBefore(op, front);
    if (!isInEntry)
      capi.mlirOperationSetLocation(op, unknownLocation);
    isChanged = true;
    return false;
  }

  const Capi &capi;
  std::vector<const void *> constants, isolated;
  MlirLocation unknownLocation;
  bool isChanged = false;
};

} // namespace

bool hoistConstants(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                    const std::vector<std::string> &isolated) {
  return ConstantHoisting(capi, root, names, isolated).run(root);
}

} // namespace mlir_shard
