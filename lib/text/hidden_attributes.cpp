// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/hidden_attributes.h"

#include "ir/below.h"

namespace mlir_shard {

HiddenAttributes::HiddenAttributes(const Capi &capi, MlirOperation root, const AttributesOfOperations &hidden)
    : capi(capi) {
  const MlirContext context = capi.mlirOperationGetContext(root);
  std::vector<const void *> operations;
  for (const auto &[operation, attributes] : hidden)
    operations.push_back(capi.mlirIdentifierGet(context, toStringRef(operation)).pointer);
  const auto hide = [&](MlirOperation op) {
    const void *name = capi.mlirOperationGetName(op).pointer;
    for (std::size_t i = 0; i < operations.size(); ++i)
      if (operations[i] == name)
        for (const std::string &attribute : hidden[i].second)
          if (const MlirAttribute value = capi.mlirOperationGetAttributeByName(op, toStringRef(attribute))) {
            removed.push_back({op, toStringRef(attribute), value});
            capi.mlirOperationRemoveAttributeByName(op, toStringRef(attribute));
          }
  };
  hide(root);
  eachBelow(capi, root, false, hide);
}

HiddenAttributes::~HiddenAttributes() {
  for (const auto &[op, name, attribute] : removed)
    capi.mlirOperationSetAttributeByName(op, name, attribute);
}

} // namespace mlir_shard
