// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/attributes.h"

#include "ir/below.h"
#include "ir/function_signature.h"
#include "ir/pointer_map.h"

#include <unordered_map>
#include <unordered_set>

namespace mlir_shard {
namespace {

// Visits `root` and all operations below it in pre-order: calls `onHolder` for operations with a name in
// `places.holders`, `onFunction` for functions, and `onOperation` for operations with a discardable attribute called
// `places.name`.
template <typename OnHolder, typename OnFunction, typename OnOperation>
void eachPlace(const Capi &capi, MlirOperation root, const AttributePlaces &places, const OnHolder &onHolder,
               const OnFunction &onFunction, const OnOperation &onOperation) {
  const std::vector<const void *> holders = identifiers(capi, root, places.holders);
  const MlirIdentifier function = capi.mlirIdentifierGet(capi.mlirOperationGetContext(root), toStringRef("func.func"));
  const auto visit = [&](MlirOperation op) {
    const MlirIdentifier name = capi.mlirOperationGetName(op);
    if (contains(holders, name.pointer))
      onHolder(op);
    else if (name == function)
      onFunction(op);
    if (MlirAttribute attribute = capi.mlirOperationGetDiscardableAttributeByName(op, toStringRef(places.name)))
      onOperation(op, attribute);
  };
  visit(root);
  eachBelow(capi, root, false, visit);
}

} // namespace

AttributeColumns attributeColumns(const Capi &capi, const std::vector<MlirOperation> &ops,
                                  const std::vector<std::string> &names) {
  AttributeColumns found;
  found.columns.assign(names.size(), std::vector<std::int32_t>(ops.size(), -1));
  PointerNumbers numbers;
  // All attributes of an operation are read while it is in the cache.
  for (std::size_t i = 0; i < ops.size(); ++i) {
    prefetchAfter(ops, i);
    for (std::size_t column = 0; column < names.size(); ++column) {
      const MlirAttribute attribute = capi.mlirOperationGetAttributeByName(ops[i], toStringRef(names[column]));
      if (!attribute)
        continue;
      const auto [number, isNew] = numbers.insert(attribute.pointer);
      if (isNew)
        found.distinct.push_back(attribute);
      found.columns[column][i] = number;
    }
  }
  return found;
}

std::vector<MlirAttribute> distinctAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places) {
  std::unordered_set<const void *> seen;
  std::vector<MlirAttribute> distinct;
  const auto add = [&](MlirAttribute attribute) {
    if (seen.insert(attribute.pointer).second)
      distinct.push_back(attribute);
  };
  const auto addOfFunction = [&](MlirOperation op) {
    for (Side side : bothSides) {
      const MlirAttribute dictionaries = capi.mlirOperationGetAttributeByName(op, toStringRef(nameOf(side)));
      for (std::intptr_t i = 0, count = dictionaries ? capi.mlirArrayAttrGetNumElements(dictionaries) : 0; i < count;
           ++i) {
        const MlirAttribute dictionary = capi.mlirArrayAttrGetElement(dictionaries, i);
        if (MlirAttribute attribute = capi.mlirDictionaryAttrGetElementByName(dictionary, toStringRef(places.name)))
          add(attribute);
      }
    }
  };
  eachPlace(
      capi, root, places,
      [&](MlirOperation op) {
        for (const MlirNamedAttribute &named : attributesOf(capi, op))
          add(named.attribute);
      },
      addOfFunction, [&](MlirOperation, MlirAttribute attribute) { add(attribute); });
  return distinct;
}

ReplacedAttributes replaceAttributes(const Capi &capi, MlirOperation root, const AttributePlaces &places,
                                     const std::function<MlirAttribute(MlirAttribute)> &replaced) {
  ReplacedAttributes result;
  std::unordered_map<const void *, MlirAttribute> known;
  EntryReplacer entries(capi, capi.mlirOperationGetContext(root), places.name);
  const auto replacement = [&](MlirAttribute attribute) {
    auto found = known.find(attribute.pointer);
    if (found == known.end())
      found = known.emplace(attribute.pointer, replaced(attribute)).first;
    return found->second;
  };
  const auto replaceOfHolder = [&](MlirOperation op) {
    const MlirIdentifier name =
        capi.mlirIdentifierGet(capi.mlirOperationGetContext(op), toStringRef(places.name));
    bool isChanged = false;
    for (const MlirNamedAttribute &named : attributesOf(capi, op)) {
      if (named.name == name)
        continue;
      if (const MlirAttribute now = replacement(named.attribute); !(now == named.attribute)) {
        capi.mlirOperationSetAttributeByName(op, capi.mlirIdentifierStr(named.name), now);
        isChanged = true;
      }
    }
    if (isChanged)
      result.holders.push_back(op);
    result.isAny = result.isAny || isChanged;
  };
  const auto replaceOfFunction = [&](MlirOperation op) {
    for (Side side : bothSides) {
      const MlirStringRef key = toStringRef(nameOf(side));
      const MlirAttribute old = capi.mlirOperationGetAttributeByName(op, key);
      std::vector<MlirAttribute> dictionaries;
      bool isChanged = false;
      for (std::intptr_t i = 0, count = old ? capi.mlirArrayAttrGetNumElements(old) : 0; i < count; ++i) {
        const MlirAttribute dictionary = capi.mlirArrayAttrGetElement(old, i);
        const MlirAttribute attribute = capi.mlirDictionaryAttrGetElementByName(dictionary, toStringRef(places.name));
        const MlirAttribute now = attribute ? replacement(attribute) : attribute;
        dictionaries.push_back(now == attribute ? dictionary : entries.with(dictionary, now));
        isChanged = isChanged || !(now == attribute);
      }
      if (isChanged)
        capi.mlirOperationSetAttributeByName(
            op, key,
            capi.mlirArrayAttrGet(capi.mlirOperationGetContext(op), static_cast<std::intptr_t>(dictionaries.size()),
                                  dictionaries.data()));
      result.isAny = result.isAny || isChanged;
    }
  };
  eachPlace(capi, root, places, replaceOfHolder, replaceOfFunction, [&](MlirOperation op, MlirAttribute attribute) {
    if (MlirAttribute now = replacement(attribute); !(now == attribute)) {
      capi.mlirOperationSetDiscardableAttributeByName(op, toStringRef(places.name), now);
      result.isAny = true;
    }
  });
  return result;
}

void removeAttributes(const Capi &capi, MlirOperation root, const std::string &wanted) {
  std::unordered_map<const void *, bool> removed;
  auto isRemoved = [&](MlirIdentifier name) {
    const auto [found, isNew] = removed.emplace(name.pointer, false);
    if (isNew) {
      const std::string_view text = toView(capi.mlirIdentifierStr(name));
      found->second = wanted.back() == '.' ? text.substr(0, wanted.size()) == wanted : text == wanted;
    }
    return found->second;
  };
  auto remove = [&](MlirOperation op) {
    for (std::intptr_t i = capi.mlirOperationGetNumDiscardableAttributes(op); i-- > 0;)
      if (const MlirIdentifier name = capi.mlirOperationGetDiscardableAttribute(op, i).name; isRemoved(name))
        capi.mlirOperationRemoveDiscardableAttributeByName(op, capi.mlirIdentifierStr(name));
  };
  remove(root);
  eachBelow(capi, root, false, remove);
}

} // namespace mlir_shard
