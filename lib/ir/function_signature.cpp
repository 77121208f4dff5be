// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/function_signature.h"

#include <stdexcept>

namespace mlir_shard {
namespace {

MlirType functionType(const Capi &capi, MlirOperation function) {
  MlirAttribute type = capi.mlirOperationGetAttributeByName(function, toStringRef("function_type"));
  if (!type)
    throw std::invalid_argument("only a function has a signature");
  return capi.mlirTypeAttrGetValue(type);
}

std::intptr_t countOf(const Capi &capi, MlirType function, Side side) {
  return side == Side::Arguments ? capi.mlirFunctionTypeGetNumInputs(function)
                                 : capi.mlirFunctionTypeGetNumResults(function);
}

// Returns the number of `one` in `distinct`, to which it is appended if it is new.
template <typename Handle>
std::int32_t numbered(Handle one, std::vector<Handle> &distinct,
                      std::unordered_map<const void *, std::int32_t> &numbers) {
  const auto [found, isNew] = numbers.emplace(one.pointer, static_cast<std::int32_t>(distinct.size()));
  if (isNew)
    distinct.push_back(one);
  return found->second;
}

} // namespace

const char *nameOf(Side side) { return side == Side::Arguments ? "arg_attrs" : "res_attrs"; }

SignatureColumn signatureColumn(const Capi &capi, MlirOperation function, Side side, const std::string &name) {
  SignatureColumn column;
  std::unordered_map<const void *, std::int32_t> attributes, types;
  const MlirType type = functionType(capi, function);
  const MlirAttribute dictionaries = capi.mlirOperationGetAttributeByName(function, toStringRef(nameOf(side)));
  const std::intptr_t count = countOf(capi, type, side);
  column.attributes.reserve(count);
  column.types.reserve(count);
  for (std::intptr_t i = 0; i < count; ++i) {
    MlirAttribute attribute;
    if (dictionaries)
      attribute = capi.mlirDictionaryAttrGetElementByName(capi.mlirArrayAttrGetElement(dictionaries, i),
                                                          toStringRef(name));
    column.attributes.push_back(attribute ? numbered(attribute, column.distinctAttributes, attributes) : -1);
    const MlirType one = side == Side::Arguments ? capi.mlirFunctionTypeGetInput(type, i)
                                                 : capi.mlirFunctionTypeGetResult(type, i);
    column.types.push_back(numbered(one, column.distinctTypes, types));
  }
  return column;
}

void setSignatureColumn(const Capi &capi, MlirOperation function, Side side, const std::string &name,
                        const std::vector<MlirAttribute> &attributes) {
  const MlirContext context = capi.mlirOperationGetContext(function);
  const MlirStringRef key = toStringRef(nameOf(side));
  if (countOf(capi, functionType(capi, function), side) != static_cast<std::intptr_t>(attributes.size()))
    throw std::invalid_argument("there has to be an attribute or none for each argument or result");
  const MlirAttribute old = capi.mlirOperationGetAttributeByName(function, key);
  const MlirAttribute empty = capi.mlirDictionaryAttrGet(context, 0, nullptr);
  EntryReplacer replacer(capi, context, name);
  std::vector<MlirAttribute> dictionaries;
  dictionaries.reserve(attributes.size());
  bool isEmpty = true;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const MlirAttribute before = old ? capi.mlirArrayAttrGetElement(old, static_cast<std::intptr_t>(i)) : empty;
    dictionaries.push_back(replacer.with(before, attributes[i]));
    isEmpty = isEmpty && dictionaries.back() == empty;
  }
  if (!isEmpty)
    capi.mlirOperationSetAttributeByName(
        function, key,
        capi.mlirArrayAttrGet(context, static_cast<std::intptr_t>(dictionaries.size()), dictionaries.data()));
  else if (old)
    capi.mlirOperationRemoveAttributeByName(function, key);
}

EntryReplacer::EntryReplacer(const Capi &capi, MlirContext context, const std::string &name)
    : capi(capi), context(context), name(capi.mlirIdentifierGet(context, toStringRef(name))) {}

MlirAttribute EntryReplacer::with(MlirAttribute dictionary, MlirAttribute attribute) {
  const auto [found, isNew] = known.emplace(Key{dictionary.pointer, attribute.pointer}, MlirAttribute{});
  if (!isNew)
    return found->second;
  std::vector<MlirNamedAttribute> entries;
  for (std::intptr_t i = 0, count = capi.mlirDictionaryAttrGetNumElements(dictionary); i < count; ++i) {
    const MlirNamedAttribute entry = capi.mlirDictionaryAttrGetElement(dictionary, i);
    if (!(entry.name == name))
      entries.push_back(entry);
  }
  if (attribute)
    entries.push_back({name, attribute});
  found->second = capi.mlirDictionaryAttrGet(context, static_cast<std::intptr_t>(entries.size()), entries.data());
  return found->second;
}

} // namespace mlir_shard
