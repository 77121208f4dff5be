// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/unused.h"

#include "ir/below.h"
#include "ir/walk.h"

#include <string_view>
#include <unordered_map>

namespace mlir_shard {

bool mayHaveUnused(const Capi &capi, MlirOperation root) {
  // By the name, whether the host erases none of its operations.
  std::unordered_map<const void *, bool> kept;
  bool found = false;
  eachBelow(capi, root, false, [&](MlirOperation op) {
    if (found || isTerminator(capi, op) || isUsed(capi, op))
      return;
    const MlirIdentifier name = capi.mlirOperationGetName(op);
    const auto [known, isNew] = kept.try_emplace(name.pointer, false);
    if (isNew) {
      const std::string_view text = toView(capi.mlirIdentifierStr(name));
      known->second = text.rfind("sdy.", 0) == 0 || text == "func.func" || text == "builtin.module";
    }
    found = !known->second;
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
