// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/inlining.h"

#include "ir/below.h"
#include "rewriting/replacement.h"

#include <stdexcept>
#include <unordered_map>

namespace mlir_shard {
namespace {

// Creates call site locations, one for each distinct location.
class CallSites {
public:
  CallSites(const Capi &capi, MlirOperation call) : capi(capi), caller(capi.mlirOperationGetLocation(call)) {}

  void relocate(MlirOperation op) {
    capi.mlirOperationSetLocation(op, of(capi.mlirOperationGetLocation(op)));
    relocateArguments(op);
    eachBelow(capi, op, false, [&](MlirOperation inner) {
      capi.mlirOperationSetLocation(inner, of(capi.mlirOperationGetLocation(inner)));
      relocateArguments(inner);
    });
  }

private:
  MlirLocation of(MlirLocation callee) {
    MlirLocation &known = sites[callee.pointer];
    if (!known)
      known = capi.mlirLocationCallSiteGet(callee, caller);
    return known;
  }

  void relocateArguments(MlirOperation op) {
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region))
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block))
        for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
          const MlirValue argument = capi.mlirBlockGetArgument(block, i);
          capi.mlirBlockArgumentSetLocation(argument, of(capi.mlirValueGetLocation(argument)));
        }
  }

  const Capi &capi;
  MlirLocation caller;
  std::unordered_map<const void *, MlirLocation> sites;
};

} // namespace

std::vector<MlirOperation> inlineBody(const Capi &capi, MlirOperation call, MlirOperation function) {
  const MlirOperation copy = capi.mlirOperationClone(function);
  const MlirBlock block = capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(copy));
  const MlirOperation last = terminatorOf(capi, copy);
  if (capi.mlirBlockGetNumArguments(block) != capi.mlirOperationGetNumOperands(call) ||
      capi.mlirOperationGetNumOperands(last) != capi.mlirOperationGetNumResults(call)) {
    capi.mlirOperationDestroy(copy);
    throw std::invalid_argument("a call has to agree with the function in the number of operands and results");
  }
  for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
    capi.mlirValueReplaceAllUsesOfWith(capi.mlirBlockGetArgument(block, i), capi.mlirOperationGetOperand(call, i));
  CallSites sites(capi, call);
  const MlirIdentifier callName = capi.mlirIdentifierGet(capi.mlirOperationGetContext(call), toStringRef("func.call"));
  std::vector<MlirOperation> changed;
  const auto add = [&](MlirOperation op) {
    if (!(capi.mlirOperationGetName(op) == callName))
      changed.push_back(op);
  };
  for (MlirOperation op = capi.mlirBlockGetFirstOperation(block); !(op == last);) {
    const MlirOperation next = capi.mlirOperationGetNextInBlock(op);
    sites.relocate(op);
    capi.mlirOperationMoveBefore(op, call);
    add(op);
    op = next;
  }
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(call); i < count; ++i) {
    const MlirValue result = capi.mlirOperationGetResult(call, i);
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(result); use; use = capi.mlirOpOperandGetNextUse(use))
      add(capi.mlirOpOperandGetOwner(use));
    capi.mlirValueReplaceAllUsesOfWith(result, capi.mlirOperationGetOperand(last, i));
  }
  capi.mlirOperationDestroy(call);
  capi.mlirOperationDestroy(copy);
  return changed;
}

} // namespace mlir_shard
