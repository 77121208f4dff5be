// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "verification/verified_functions.h"

#include "ir/below.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace mlir_shard {

namespace {
// Returns whether `count` values have the types of one side of a function type.
template <typename ValueAt>
bool haveTypes(const Capi &capi, MlirType type, Side side, std::intptr_t count, const ValueAt &valueAt) {
  const auto sizeOf =
      side == Side::Arguments ? capi.mlirFunctionTypeGetNumInputs : capi.mlirFunctionTypeGetNumResults;
  const auto typeAt = side == Side::Arguments ? capi.mlirFunctionTypeGetInput : capi.mlirFunctionTypeGetResult;
  if (sizeOf(type) != count)
    return false;
  for (std::intptr_t i = 0; i < count; ++i)
    if (!(typeAt(type, i) == capi.mlirValueGetType(valueAt(i))))
      return false;
  return true;
}

bool haveOperandsTypes(const Capi &capi, MlirType type, Side side, MlirOperation op) {
  return haveTypes(capi, type, side, capi.mlirOperationGetNumOperands(op),
                   [&](std::intptr_t i) { return capi.mlirOperationGetOperand(op, i); });
}

// Returns whether an attribute is a visibility that a function with a body may have.
bool isVisibility(const Capi &capi, std::string_view name, MlirAttribute attribute) {
  if (name != "sym_visibility")
    return false;
  const std::string_view value = toView(capi.mlirStringAttrGetValue(attribute));
  return value == "private" || value == "public" || value == "nested";
}

// Attributes of dialects that are defined at run time have no verifier in the host.
bool isOfSdy(std::string_view name) { return name.rfind("sdy.", 0) == 0; }
} // namespace

bool isCallOf(const Capi &capi, MlirType functionType, MlirOperation call) {
  return haveOperandsTypes(capi, functionType, Side::Arguments, call) &&
         haveTypes(capi, functionType, Side::Results, capi.mlirOperationGetNumResults(call),
                   [&](std::intptr_t i) { return capi.mlirOperationGetResult(call, i); });
}

bool isNamedAndTypedAsItsBody(const Capi &capi, MlirOperation function) {
  const MlirBlock block = capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(function));
  if (!block || capi.mlirBlockGetNextInRegion(block))
    return false;
  const MlirOperation terminator = capi.mlirBlockGetTerminator(block);
  if (!terminator || toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(terminator))) != "func.return")
    return false;
  const MlirAttribute symbol = capi.mlirOperationGetAttributeByName(function, toStringRef("sym_name"));
  const MlirAttribute attribute = capi.mlirOperationGetAttributeByName(function, toStringRef("function_type"));
  if (!symbol || !attribute || toView(capi.mlirStringAttrGetValue(symbol)).empty())
    return false;
  const MlirType type = capi.mlirTypeAttrGetValue(attribute);
  const auto isAsLong = [&](Side side, std::intptr_t length) {
    const MlirAttribute list = capi.mlirOperationGetAttributeByName(function, toStringRef(nameOf(side)));
    return !list || capi.mlirArrayAttrGetNumElements(list) == length;
  };
  return haveTypes(capi, type, Side::Arguments, capi.mlirBlockGetNumArguments(block),
                   [&](std::intptr_t i) { return capi.mlirBlockGetArgument(block, i); }) &&
         haveOperandsTypes(capi, type, Side::Results, terminator) &&
         isAsLong(Side::Arguments, capi.mlirFunctionTypeGetNumInputs(type)) &&
         isAsLong(Side::Results, capi.mlirFunctionTypeGetNumResults(type));
}

FunctionKeys::FunctionKeys(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored)
    : capi(capi) {
  for (const std::string &name : ignored)
    ignoredNames.push_back(capi.mlirIdentifierGet(context, toStringRef(name)).pointer);
}

void FunctionKeys::addSide(MlirOperation function, Side side, Key &key) const {
  const MlirAttribute array = capi.mlirOperationGetAttributeByName(function, toStringRef(nameOf(side)));
  const std::intptr_t count = array ? capi.mlirArrayAttrGetNumElements(array) : 0;
  for (std::intptr_t i = 0; i < count; ++i) {
    const MlirAttribute dictionary = capi.mlirArrayAttrGetElement(array, i);
    for (std::intptr_t j = 0, size = capi.mlirDictionaryAttrGetNumElements(dictionary); j < size; ++j) {
      const MlirNamedAttribute named = capi.mlirDictionaryAttrGetElement(dictionary, j);
      if (!contains(ignoredNames, named.name.pointer))
        key.insert(key.end(), {named.name.pointer, named.attribute.pointer});
    }
  }
}

FunctionKeys::Key FunctionKeys::ofAttributes(MlirOperation function) const {
  Key key;
  for (const MlirNamedAttribute &named : attributesOf(capi, function)) {
    const std::string_view name = toView(capi.mlirIdentifierStr(named.name));
    const bool isLookedAt =
        name == "sym_name" || name == "function_type" || name == nameOf(Side::Arguments) || name == nameOf(Side::Results);
    if (!isLookedAt && !isOfSdy(name) && !isVisibility(capi, name, named.attribute))
      key.insert(key.end(), {named.name.pointer, named.attribute.pointer});
  }
  key.push_back(nullptr);
  // The set of attributes matters, but not how many arguments have them, nor which ones.
  Key entries;
  std::vector<std::pair<const void *, const void *>> distinct;
  for (const Side side : bothSides) {
    entries.clear();
    addSide(function, side, entries);
    distinct.clear();
    for (std::size_t i = 0; i < entries.size(); i += 2)
      distinct.emplace_back(entries[i], entries[i + 1]);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const auto &[name, attribute] : distinct)
      key.insert(key.end(), {name, attribute});
    key.push_back(nullptr);
  }
  return key;
}

} // namespace mlir_shard
