// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "signatures.h"

#include <algorithm>
#include <functional>

namespace mlir_shard {

std::size_t PointersHash::operator()(const std::vector<const void *> &pointers) const {
  std::size_t hash = pointers.size();
  for (const void *pointer : pointers)
    hash = (hash ^ std::hash<const void *>{}(pointer)) * 0x9E3779B97F4A7C15ull;
  return hash;
}

Signatures::Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored) : capi(capi) {
  for (const std::string &name : ignored)
    ignoredNames.push_back(capi.mlirIdentifierGet(context, toStringRef(name)).pointer);
}

std::int32_t Signatures::of(MlirOperation op) {
  key.assign({capi.mlirOperationGetName(op).pointer});
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    key.push_back(capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i)).pointer);
  key.push_back(nullptr);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    key.push_back(capi.mlirValueGetType(capi.mlirOperationGetResult(op, i)).pointer);
  key.push_back(nullptr);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumAttributes(op); i < count; ++i) {
    MlirNamedAttribute named = capi.mlirOperationGetAttribute(op, i);
    if (std::find(ignoredNames.begin(), ignoredNames.end(), named.name.pointer) == ignoredNames.end())
      key.insert(key.end(), {named.name.pointer, named.attribute.pointer});
  }
  return numbers.emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
}

} // namespace mlir_shard
