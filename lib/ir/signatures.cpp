// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/signatures.h"

#include "ir/mixed.h"
#include "ir/size_pattern.h"

#include <algorithm>
#include <functional>
#include <utility>

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
  return hash ^ hash >> 32;
}

std::int32_t PointerSequences::number(const std::vector<const void *> &sequence) {
  const auto hash = static_cast<std::uint32_t>(PointersHash()(sequence));
  const std::size_t mask = slots.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots[slot] >= 0; slot = (slot + 1) & mask) {
    const Entry &entry = entries[slots[slot]];
    if (entry.hash == hash && std::equal(sequence.begin(), sequence.end(), pointers.begin() + begin(slots[slot]),
                                         pointers.begin() + entry.end))
      return slots[slot];
  }
  const auto number = static_cast<std::int32_t>(entries.size());
  slots[slot] = number;
  pointers.insert(pointers.end(), sequence.begin(), sequence.end());
  entries.push_back({hash, static_cast<std::uint32_t>(pointers.size())});
  if (2 * entries.size() > slots.size())
    grow();
  return number;
}

void PointerSequences::grow() {
  slots.assign(2 * slots.size(), -1);
  const std::size_t mask = slots.size() - 1;
  for (std::size_t number = 0; number < entries.size(); ++number) {
    std::size_t slot = entries[number].hash & mask;
    while (slots[slot] >= 0)
      slot = (slot + 1) & mask;
    slots[slot] = static_cast<std::int32_t>(number);
  }
}

void readTypes(const Capi &capi, MlirOperation op, std::vector<MlirType> &types) {
  types.clear();
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    types.push_back(capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i)));
  types.push_back({nullptr});
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    types.push_back(capi.mlirValueGetType(capi.mlirOperationGetResult(op, i)));
  types.push_back({nullptr});
}

Signatures::Signatures(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored,
                       AnySizes anySizes)
    : capi(capi), inherent(capi.inherentNames ? capi.inherentNames : std::make_shared<InherentNames>()),
      anySizes(std::move(anySizes)) {
  for (const std::string &name : ignored)
    ignoredNames.push_back(capi.mlirIdentifierGet(context, toStringRef(name)).pointer);
}

void Signatures::add(MlirIdentifier name, MlirAttribute attribute) {
  if (std::find(ignoredNames.begin(), ignoredNames.end(), name.pointer) == ignoredNames.end())
    key.insert(key.end(), {name.pointer, attribute.pointer});
  else
    ignored = mixed(mixed(ignored, name.pointer), attribute.pointer);
}

Signatures::OfName &Signatures::ofName(MlirOperation op, MlirIdentifier opName) {
  const auto [number, isNew] = numbersOfNames.insert(opName.pointer, static_cast<std::int32_t>(names.size()));
  if (isNew)
    names.push_back(
        {&inherent->of(capi, op), {}, false, anySizes && anySizes(toView(capi.mlirIdentifierStr(opName)))});
  OfName &found = names[number];
  if (!found.known->areAll && inherent->read(capi, op, *found.known))
    found.isChecked = false;
  // Other names may have been found in another context.
  for (std::size_t i = found.identifiers.size(); i < found.known->names.size(); ++i)
    found.identifiers.push_back(
        capi.mlirIdentifierGet(capi.mlirOperationGetContext(op), toStringRef(found.known->names[i])));
  return found;
}

void Signatures::addAttributes(MlirOperation op, OfName &found) {
  const std::intptr_t discardable = capi.mlirOperationGetNumDiscardableAttributes(op);
  for (std::intptr_t i = 0; i < discardable; ++i) {
    const MlirNamedAttribute named = capi.mlirOperationGetDiscardableAttribute(op, i);
    add(named.name, named.attribute);
  }
  if (found.known->areAll && found.isChecked) {
    addInherent(op, found);
    return;
  }
  const std::intptr_t count = capi.mlirOperationGetNumAttributes(op) - discardable;
  found.isChecked = true;
  const std::size_t begin = key.size();
  if (addInherent(op, found) == count)
    return;
  found.known->areAll = false;
  learn(op, found, count + discardable);
  key.resize(begin);
  if (addInherent(op, found) == count)
    return;
  // Some attributes of the operation cannot be looked up by name.
  key.resize(begin);
  for (std::intptr_t i = 0; i < count + discardable; ++i) {
    const MlirNamedAttribute named = capi.mlirOperationGetAttribute(op, i);
    add(named.name, named.attribute);
  }
}

// Adds the attributes of an operation that have known names. Returns the number of attributes added.
std::intptr_t Signatures::addInherent(MlirOperation op, const OfName &ofName) {
  std::intptr_t count = 0;
  for (std::size_t i = 0; i < ofName.identifiers.size(); ++i)
    if (MlirAttribute attribute =
            capi.mlirOperationGetInherentAttributeByName(op, toStringRef(ofName.known->names[i]))) {
      add(ofName.identifiers[i], attribute);
      ++count;
    }
  return count;
}

// Adds the names of an operation's inherent attributes to the known names. The operation has `count` attributes.
void Signatures::learn(MlirOperation op, OfName &ofName, std::intptr_t count) {
  for (std::intptr_t i = 0; i < count; ++i) {
    const MlirIdentifier name = capi.mlirOperationGetAttribute(op, i).name;
    if (std::find(ofName.identifiers.begin(), ofName.identifiers.end(), name) == ofName.identifiers.end() &&
        capi.mlirOperationGetInherentAttributeByName(op, capi.mlirIdentifierStr(name))) {
      ofName.identifiers.push_back(name);
      ofName.known->names.emplace_back(toView(capi.mlirIdentifierStr(name)));
    }
  }
}

std::int32_t Signatures::number(MlirOperation op, const void *name, const std::vector<MlirType> &types) {
  ignored = 0;
  key.assign({name});
  for (MlirType type : types)
    key.push_back(type.pointer);
  OfName &found = ofName(op, capi.mlirOperationGetName(op));
  addAttributes(op, found);
  const std::int32_t exact = sequences.number(key);
  return anySizes ? classOf(exact, found, types) : exact;
}

// Returns the class of the sequence in `key`, which is computed once.
std::int32_t Signatures::classOf(std::int32_t exact, const OfName &ofName, const std::vector<MlirType> &types) {
  if (static_cast<std::size_t>(exact) < classOfSequence.size())
    return classOfSequence[exact];
  if (ofName.anySizes) {
    // No sequence has two null pointers after the name, so patterns differ from sequences.
    std::vector<const void *> pattern{key.front(), nullptr, nullptr};
    if (appendSizePattern(capi, types, pattern)) {
      pattern.insert(pattern.end(), key.begin() + 1 + static_cast<std::ptrdiff_t>(types.size()), key.end());
      return classOfSequence.emplace_back(classes.number(pattern));
    }
  }
  return classOfSequence.emplace_back(classes.number(key));
}

} // namespace mlir_shard
