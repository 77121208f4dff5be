// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "module_arrays.h"

#include <algorithm>
#include <functional>

namespace mlir_shard {

std::size_t ModuleArrays::PointersHash::operator()(const std::vector<const void *> &pointers) const {
  std::size_t hash = pointers.size();
  for (const void *pointer : pointers)
    hash = (hash ^ std::hash<const void *>{}(pointer)) * 0x9E3779B97F4A7C15ull;
  return hash;
}

ModuleArrays::ModuleArrays(const Capi &capi, MlirOperation root, const std::vector<std::string> &ignored) : capi(capi) {
  MlirContext context = capi.mlirOperationGetContext(root);
  for (const std::string &name : ignored)
    ignoredNames.push_back(capi.mlirIdentifierGet(context, toStringRef(name)).pointer);
  visit(root, -1);
}

// Visits what is in the regions of `op`, which is number `parent`.
void ModuleArrays::visit(MlirOperation op, std::int32_t parent) {
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region))
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
        add(capi.mlirBlockGetArgument(block, i), -1);
      for (MlirOperation child = capi.mlirBlockGetFirstOperation(block); child;
           child = capi.mlirOperationGetNextInBlock(child)) {
        const auto number = static_cast<std::int32_t>(ops.size());
        ops.push_back(child);
        parents.push_back(parent);
        signatures.push_back(signatureOf(child));
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(child); i < count; ++i)
          operands.numbers.push_back(add(capi.mlirOperationGetOperand(child, i), -1));
        operands.endGroup();
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(child); i < count; ++i)
          results.numbers.push_back(add(capi.mlirOperationGetResult(child, i), number));
        results.endGroup();
        visit(child, number);
      }
    }
}

// An operand may come before its definition, in a region without dominance or in a later block.
std::int32_t ModuleArrays::add(MlirValue value, std::int32_t definer) {
  auto [entry, isNew] = numbers.emplace(value.pointer, static_cast<std::int32_t>(values.size()));
  if (isNew) {
    values.push_back(value);
    definers.push_back(definer);
  } else if (definer >= 0) {
    definers[entry->second] = definer;
  }
  return entry->second;
}

std::int32_t ModuleArrays::signatureOf(MlirOperation op) {
  std::vector<const void *> key{capi.mlirOperationGetName(op).pointer};
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
  auto [entry, isNew] = signatureNumbers.emplace(std::move(key), static_cast<std::int32_t>(representatives.size()));
  if (isNew)
    representatives.push_back(op);
  return entry->second;
}

std::int32_t ModuleArrays::numberOf(MlirValue value) const {
  auto found = numbers.find(value.pointer);
  return found == numbers.end() ? -1 : found->second;
}

std::vector<std::int32_t> ModuleArrays::attributesOf(const std::string &name,
                                                     std::vector<MlirAttribute> &distinct) const {
  std::unordered_map<const void *, std::int32_t> seen;
  std::vector<std::int32_t> found;
  found.reserve(ops.size());
  for (MlirOperation op : ops) {
    MlirAttribute attribute = capi.mlirOperationGetDiscardableAttributeByName(op, toStringRef(name));
    if (!attribute) {
      found.push_back(-1);
      continue;
    }
    auto [entry, isNew] = seen.emplace(attribute.pointer, static_cast<std::int32_t>(distinct.size()));
    if (isNew)
      distinct.push_back(attribute);
    found.push_back(entry->second);
  }
  return found;
}

} // namespace mlir_shard
