// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "module_arrays.h"

#include <algorithm>
#include <functional>
#include <optional>

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
  const auto [number, isNew] = numbers.insert(value.pointer, static_cast<std::int32_t>(values.size()));
  if (isNew) {
    values.push_back(value);
    definers.push_back(definer);
  } else if (definer >= 0) {
    definers[number] = definer;
  }
  return number;
}

std::int32_t ModuleArrays::signatureOf(MlirOperation op) {
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
  auto known = signatureNumbers.find(key);
  if (known == signatureNumbers.end()) {
    known = signatureNumbers.emplace(key, static_cast<std::int32_t>(representatives.size())).first;
    representatives.push_back(op);
  }
  return known->second;
}

std::int32_t ModuleArrays::numberOf(MlirValue value) const {
  return numbers.find(value.pointer);
}

std::vector<std::int32_t> ModuleArrays::outermost(const std::function<Closes(std::int32_t)> &closes,
                                                  const std::function<bool(std::int32_t)> &isClosed) const {
  std::vector<std::optional<Closes>> known(representatives.size());
  std::vector<char> inside(ops.size());
  std::vector<std::int32_t> found;
  for (std::size_t number = 0; number < ops.size(); ++number) {
    const auto op = static_cast<std::int32_t>(number);
    if (parents[op] >= 0 && inside[parents[op]]) {
      inside[op] = 1;
      continue;
    }
    found.push_back(op);
    std::optional<Closes> &answer = known[signatures[op]];
    if (!answer)
      answer = closes(signatures[op]);
    inside[op] = *answer == Closes::Depends ? isClosed(op) : *answer == Closes::Yes;
  }
  return found;
}

std::vector<std::int32_t> ModuleArrays::useCounts() const {
  std::vector<std::int32_t> counts(values.size());
  for (std::int32_t value : operands.numbers)
    ++counts[value];
  return counts;
}

std::vector<std::pair<std::int32_t, std::int32_t>>
ModuleArrays::attributed(const std::string &name, std::vector<MlirAttribute> &distinct) const {
  PointerMap seen;
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    MlirAttribute attribute = capi.mlirOperationGetDiscardableAttributeByName(ops[op], toStringRef(name));
    if (!attribute)
      continue;
    const auto [number, isNew] = seen.insert(attribute.pointer, static_cast<std::int32_t>(distinct.size()));
    if (isNew)
      distinct.push_back(attribute);
    found.emplace_back(static_cast<std::int32_t>(op), number);
  }
  return found;
}

} // namespace mlir_shard
