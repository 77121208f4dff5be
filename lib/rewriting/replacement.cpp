// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/replacement.h"

#include "ir/below.h"
#include "ir/pointer_map.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace mlir_shard {
namespace {

MlirNamedAttribute named(const Capi &capi, MlirContext context, std::string_view name, MlirAttribute attribute) {
  return {capi.mlirIdentifierGet(context, toStringRef(name)), attribute};
}

// Creates an operation that is in no block yet.
MlirOperation create(const Capi &capi, const std::string &name, MlirLocation location,
                     const std::vector<MlirType> &results, const std::vector<MlirValue> &operands,
                     const std::vector<MlirNamedAttribute> &attributes, MlirOperation body) {
  MlirOperationState state = capi.mlirOperationStateGet(toStringRef(name), location);
  capi.mlirOperationStateAddResults(&state, static_cast<std::intptr_t>(results.size()), results.data());
  capi.mlirOperationStateAddOperands(&state, static_cast<std::intptr_t>(operands.size()), operands.data());
  capi.mlirOperationStateAddAttributes(&state, static_cast<std::intptr_t>(attributes.size()), attributes.data());
  if (body) {
    const MlirRegion region = capi.mlirRegionCreate();
    capi.mlirRegionTakeBody(region, capi.mlirOperationGetFirstRegion(body));
    capi.mlirOperationStateAddOwnedRegions(&state, 1, &region);
  }
  const MlirOperation op = capi.mlirOperationCreate(&state);
  if (!op)
    throw std::runtime_error("cannot create '" + name + "'");
  return op;
}

std::vector<MlirValue> valuesOf(const Capi &capi, MlirOperation op, Side side) {
  std::vector<MlirValue> values;
  if (side == Side::Results) {
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      values.push_back(capi.mlirOperationGetResult(op, i));
    return values;
  }
  const MlirBlock block = capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(op));
  for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
    values.push_back(capi.mlirBlockGetArgument(block, i));
  return values;
}

std::vector<MlirType> typesOf(const Capi &capi, const std::vector<MlirValue> &values) {
  std::vector<MlirType> types;
  for (MlirValue value : values)
    types.push_back(capi.mlirValueGetType(value));
  return types;
}

// Returns the link with the given name that is the only use of a value; null if none exists.
MlirOperation linkOf(const Capi &capi, MlirValue value, MlirIdentifier name) {
  const MlirOpOperand use = capi.mlirValueGetFirstUse(value);
  if (!use || capi.mlirOpOperandGetNextUse(use))
    return {};
  const MlirOperation user = capi.mlirOpOperandGetOwner(use);
  return capi.mlirOperationGetName(user) == name ? user : MlirOperation{};
}

// Creates an operation before `before` with the operands and results of all of `ops`, and redirects the uses of their
// results.
MlirOperation createForAll(const Capi &capi, const std::string &name, const std::vector<MlirOperation> &ops,
                           const std::vector<MlirNamedAttribute> &attributes, MlirOperation body,
                           MlirOperation before) {
  std::vector<MlirLocation> locations;
  std::vector<MlirValue> operands, results;
  for (MlirOperation op : ops) {
    locations.push_back(capi.mlirOperationGetLocation(op));
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
      operands.push_back(capi.mlirOperationGetOperand(op, i));
    const std::vector<MlirValue> own = valuesOf(capi, op, Side::Results);
    results.insert(results.end(), own.begin(), own.end());
  }
  const MlirLocation location =
      capi.mlirLocationFusedGet(capi.mlirOperationGetContext(before), static_cast<std::intptr_t>(locations.size()),
                                locations.data(), MlirAttribute{});
  const MlirOperation now = create(capi, name, location, typesOf(capi, results), operands, attributes, body);
  capi.mlirBlockInsertOwnedOperationBefore(capi.mlirOperationGetBlock(before), before, now);
  for (std::size_t i = 0; i < results.size(); ++i)
    capi.mlirValueReplaceAllUsesOfWith(results[i], capi.mlirOperationGetResult(now, static_cast<std::intptr_t>(i)));
  return now;
}

} // namespace

MlirOperation joinOperations(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before) {
  std::vector<MlirNamedAttribute> attributes;
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumAttributes(ops.front()); i < count; ++i)
    attributes.push_back(capi.mlirOperationGetAttribute(ops.front(), i));
  const std::string name(toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(ops.front()))));
  const MlirOperation now = createForAll(capi, name, ops, attributes, ops.front(), before);
  for (MlirOperation op : ops)
    capi.mlirOperationDestroy(op);
  return now;
}

MlirOperation placeholderFor(const Capi &capi, const std::vector<MlirOperation> &ops, MlirOperation before) {
  return createForAll(capi, "builtin.unrealized_conversion_cast", ops, {}, {}, before);
}

MlirOperation replaceOperation(const Capi &capi, MlirOperation op, const std::string &name,
                               const std::optional<std::vector<std::string>> &dropped, const Attributes &added,
                               MlirOperation body) {
  const MlirContext context = capi.mlirOperationGetContext(op);
  std::vector<MlirNamedAttribute> attributes;
  for (std::intptr_t i = 0, count = dropped ? capi.mlirOperationGetNumAttributes(op) : 0; i < count; ++i) {
    const MlirNamedAttribute one = capi.mlirOperationGetAttribute(op, i);
    if (std::find(dropped->begin(), dropped->end(), toView(capi.mlirIdentifierStr(one.name))) == dropped->end())
      attributes.push_back(one);
  }
  const std::size_t kept = attributes.size();
  for (const auto &[key, attribute] : added) {
    const MlirNamedAttribute one = named(capi, context, key, attribute);
    const auto end = attributes.begin() + static_cast<std::ptrdiff_t>(kept);
    if (std::none_of(attributes.begin(), end, [&](const auto &other) { return other.name == one.name; }))
      attributes.push_back(one);
  }
  std::vector<MlirValue> operands;
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    operands.push_back(capi.mlirOperationGetOperand(op, i));
  const std::vector<MlirValue> results = valuesOf(capi, op, Side::Results);
  const MlirOperation now =
      create(capi, name, capi.mlirOperationGetLocation(op), typesOf(capi, results), operands, attributes, body);
  capi.mlirBlockInsertOwnedOperationBefore(capi.mlirOperationGetBlock(op), op, now);
  for (std::size_t i = 0; i < results.size(); ++i)
    capi.mlirValueReplaceAllUsesOfWith(results[i], capi.mlirOperationGetResult(now, static_cast<std::intptr_t>(i)));
  capi.mlirOperationDestroy(op);
  return now;
}

MlirOperation appendOperation(const Capi &capi, MlirOperation parent, const std::string &name,
                              const Attributes &attributes, MlirOperation body) {
  std::vector<MlirNamedAttribute> entries;
  for (const auto &[key, attribute] : attributes)
    entries.push_back(named(capi, capi.mlirOperationGetContext(parent), key, attribute));
  const MlirOperation now = create(capi, name, capi.mlirOperationGetLocation(body), {}, {}, entries, body);
  capi.mlirBlockAppendOwnedOperation(capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(parent)), now);
  return now;
}

MlirAttribute functionTypeOf(const Capi &capi, MlirOperation op) {
  const std::vector<MlirType> arguments = typesOf(capi, valuesOf(capi, op, Side::Arguments));
  const std::vector<MlirType> results = typesOf(capi, valuesOf(capi, op, Side::Results));
  return capi.mlirTypeAttrGet(
      capi.mlirFunctionTypeGet(capi.mlirOperationGetContext(op), static_cast<std::intptr_t>(arguments.size()),
                               arguments.data(), static_cast<std::intptr_t>(results.size()), results.data()));
}

MlirOperation terminatorOf(const Capi &capi, MlirOperation op) {
  const MlirOperation last = lastInBlock(capi, capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(op)));
  if (!last)
    throw std::invalid_argument("the body of the operation is empty");
  return last;
}

std::size_t blockCount(const Capi &capi, MlirOperation op) {
  std::size_t count = 0;
  for (MlirBlock block = capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(op)); block;
       block = capi.mlirBlockGetNextInRegion(block))
    ++count;
  return count;
}

std::vector<MlirOperation> addLinks(const Capi &capi, const Link &link, Side side,
                                    const std::vector<MlirOperation> &ops,
                                    const std::vector<std::vector<MlirAttribute>> &attributes,
                                    const std::function<bool(MlirType)> &isWanted) {
  std::vector<MlirOperation> made;
  std::unordered_map<const void *, bool> wanted;
  for (std::size_t number = 0; number < ops.size(); ++number) {
    const MlirOperation op = ops[number];
    const MlirContext context = capi.mlirOperationGetContext(op);
    const MlirIdentifier name = capi.mlirIdentifierGet(context, toStringRef(link.name));
    const std::vector<MlirValue> values = valuesOf(capi, op, side);
    // Each link is inserted directly after the definition of the values, so processing the last value first keeps their
    // order.
    for (std::size_t i = values.size(); i-- > 0;) {
      const MlirType type = capi.mlirValueGetType(values[i]);
      auto known = wanted.find(type.pointer);
      if (known == wanted.end())
        known = wanted.emplace(type.pointer, isWanted(type)).first;
      if (!known->second || linkOf(capi, values[i], name))
        continue;
      std::vector<MlirNamedAttribute> entries;
      if (i < attributes.at(number).size() && attributes[number][i])
        entries.push_back(named(capi, context, link.attribute, attributes[number][i]));
      const MlirOperation now =
          create(capi, link.name, capi.mlirValueGetLocation(values[i]), {type}, {values[i]}, entries, {});
      if (side == Side::Results)
        capi.mlirBlockInsertOwnedOperationAfter(capi.mlirOperationGetBlock(op), op, now);
      else
        capi.mlirBlockInsertOwnedOperation(capi.mlirRegionGetFirstBlock(capi.mlirOperationGetFirstRegion(op)), 0, now);
      MlirOperation exception = now;
      capi.mlirValueReplaceAllUsesExcept(values[i], capi.mlirOperationGetResult(now, 0), 1, &exception);
      made.push_back(now);
    }
  }
  return made;
}

TakenLinks takeLinks(const Capi &capi, const Link &link, Side side, const std::vector<MlirOperation> &ops) {
  TakenLinks taken;
  PointerMap known;
  PointerNumbers seenUsers;
  std::unordered_set<const void *> removed;
  const auto numberOf = [&](MlirAttribute attribute) {
    const auto [number, isNew] = known.insert(attribute.pointer, static_cast<std::int32_t>(taken.attributes.size()));
    if (isNew)
      taken.attributes.push_back(attribute);
    return number;
  };
  for (MlirOperation op : ops) {
    const MlirIdentifier name = capi.mlirIdentifierGet(capi.mlirOperationGetContext(op), toStringRef(link.name));
    std::vector<std::int32_t> &numbers = taken.numbers.emplace_back();
    for (MlirValue value : valuesOf(capi, op, side)) {
      const MlirOperation found = linkOf(capi, value, name);
      const MlirAttribute attribute =
          found ? capi.mlirOperationGetAttributeByName(found, toStringRef(link.attribute)) : MlirAttribute{};
      numbers.push_back(attribute ? numberOf(attribute) : -1);
      if (!found)
        continue;
      const MlirValue result = capi.mlirOperationGetResult(found, 0);
      for (MlirOpOperand use = capi.mlirValueGetFirstUse(result); use; use = capi.mlirOpOperandGetNextUse(use)) {
        const MlirOperation user = capi.mlirOpOperandGetOwner(use);
        if (seenUsers.insert(user.pointer).second)
          taken.users.push_back(user);
      }
      capi.mlirValueReplaceAllUsesOfWith(result, value);
      capi.mlirOperationDestroy(found);
      removed.insert(found.pointer);
    }
  }
  const auto isRemoved = [&](MlirOperation user) { return removed.count(user.pointer) > 0; };
  taken.users.erase(std::remove_if(taken.users.begin(), taken.users.end(), isRemoved), taken.users.end());
  return taken;
}

} // namespace mlir_shard
