// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/unused.h"

#include "ir/below.h"
#include "ir/walk.h"

#include <string_view>

namespace mlir_shard {

bool isUsed(const Capi &capi, MlirOperation op) {
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    if (capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(op, i)))
      return true;
  return false;
}

namespace {

std::string_view nameOf(const Capi &capi, MlirOperation op) {
  return toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op)));
}

bool isTerminator(const Capi &capi, MlirOperation op) {
  return !capi.mlirOperationGetNextInBlock(op) &&
         capi.mlirBlockGetTerminator(capi.mlirOperationGetBlock(op)) == op;
}

// Returns whether an operation is a symbol or a module.
bool isSymbol(const Capi &capi, MlirOperation op) {
  return !capi.mlirOperationGetNumResults(op) &&
         (capi.mlirOperationGetAttributeByName(op, toStringRef("sym_name")) || nameOf(capi, op) == "builtin.module");
}

// Returns whether an operation is dead unless it has effects. Terminators, symbols and modules are live.
bool mayBeDead(const Capi &capi, MlirOperation op) {
  return !isUsed(capi, op) && !isTerminator(capi, op) && !isSymbol(capi, op);
}

} // namespace

bool mayHaveUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &ofSdy) {
  const std::vector<const void *> counted = identifiers(capi, root, ofSdy);
  bool found = false;
  eachBelow(capi, root, false, [&](MlirOperation op) {
    found = found || (mayBeDead(capi, op) && (nameOf(capi, op).rfind("sdy.", 0) != 0 ||
                                              contains(counted, capi.mlirOperationGetName(op).pointer)));
  });
  return found;
}

bool eraseUnused(const Capi &capi, MlirOperation root, const std::vector<std::string> &pure,
                 const std::vector<std::string> &others, const std::function<bool(MlirOperation)> &isPure) {
  std::vector<std::string> names(pure);
  names.insert(names.end(), others.begin(), others.end());
  const std::vector<const void *> pureNames = identifiers(capi, root, pure);
  const std::vector<MlirOperation> ops = operationsNamed(capi, root, names, false);
  bool found = false;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op)
    if (!isUsed(capi, *op) && (contains(pureNames, capi.mlirOperationGetName(*op).pointer) || isPure(*op))) {
      capi.mlirOperationDestroy(*op);
      found = true;
    }
  return found;
}

} // namespace mlir_shard
