// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "signatures.h"

#include <algorithm>
#include <functional>

namespace mlir_shard {

std::size_t NumbersHash::operator()(const std::vector<std::int32_t> &numbers) const {
  std::size_t hash = numbers.size();
  for (std::int32_t number : numbers)
    hash = (hash ^ static_cast<std::uint32_t>(number)) * 0x9E3779B97F4A7C15ull;
  return hash ^ hash >> 32;
}

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

void Signatures::add(MlirIdentifier name, MlirAttribute attribute) {
  if (std::find(ignoredNames.begin(), ignoredNames.end(), name.pointer) == ignoredNames.end())
    key.insert(key.end(), {name.pointer, attribute.pointer});
}

// To count or to give the attributes of an operation that keeps some of them as properties, the host makes a dictionary
// of them all each time. So these are asked for by the names that operations of its name were seen to have, and the
// dictionary only tells whether that is all.
void Signatures::addAttributes(MlirOperation op) {
  const std::intptr_t all = capi.mlirOperationGetNumAttributes(op);
  const std::intptr_t discardable = capi.mlirOperationGetNumDiscardableAttributes(op);
  for (std::intptr_t i = 0; i < discardable; ++i) {
    const MlirNamedAttribute named = capi.mlirOperationGetDiscardableAttribute(op, i);
    add(named.name, named.attribute);
  }
  if (all == discardable)
    return;
  std::vector<MlirIdentifier> &known = inherentNames[key.front()];
  const std::size_t begin = key.size();
  if (addInherent(op, known) == all - discardable)
    return;
  for (std::intptr_t i = 0; i < all; ++i) {
    const MlirIdentifier name = capi.mlirOperationGetAttribute(op, i).name;
    if (std::find(known.begin(), known.end(), name) == known.end() &&
        capi.mlirOperationGetInherentAttributeByName(op, capi.mlirIdentifierStr(name)))
      known.push_back(name);
  }
  key.resize(begin);
  if (addInherent(op, known) == all - discardable)
    return;
  // An operation that does not give all of them by name.
  key.resize(begin);
  for (std::intptr_t i = 0; i < all; ++i) {
    const MlirNamedAttribute named = capi.mlirOperationGetAttribute(op, i);
    add(named.name, named.attribute);
  }
}

// Adds the attributes of an operation that have these names; how many there are.
std::intptr_t Signatures::addInherent(MlirOperation op, const std::vector<MlirIdentifier> &names) {
  std::intptr_t count = 0;
  for (MlirIdentifier name : names)
    if (MlirAttribute attribute = capi.mlirOperationGetInherentAttributeByName(op, capi.mlirIdentifierStr(name))) {
      add(name, attribute);
      ++count;
    }
  return count;
}

std::int32_t Signatures::of(MlirOperation op) {
  key.assign({capi.mlirOperationGetName(op).pointer});
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    key.push_back(capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i)).pointer);
  key.push_back(nullptr);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    key.push_back(capi.mlirValueGetType(capi.mlirOperationGetResult(op, i)).pointer);
  key.push_back(nullptr);
  addAttributes(op);
  return numbers.emplace(key, static_cast<std::int32_t>(numbers.size())).first->second;
}

} // namespace mlir_shard
