// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/below.h"
#include "repetition/rewrite_template.h"

#include <algorithm>

namespace mlir_shard {

RewriteTemplate::RewriteTemplate(const Capi &capi, MlirOperation op)
    : capi(capi), op(op), next(capi.mlirOperationGetNextInBlock(op)), location(capi.mlirOperationGetLocation(op)) {
  MlirOperationState state =
      capi.mlirOperationStateGet(toStringRef("builtin.unrealized_conversion_cast"), location);
  marker = capi.mlirOperationCreate(&state);
  capi.mlirBlockInsertOwnedOperationBefore(capi.mlirOperationGetBlock(op), op, marker);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    operands.push_back(capi.mlirOperationGetOperand(op, i));
  attributes = attributesOf(capi, op);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(op, i)); use;
         use = capi.mlirOpOperandGetNextUse(use))
      uses.push_back({i, capi.mlirOpOperandGetOwner(use), capi.mlirOpOperandGetOperandNumber(use)});
}

RewriteTemplate::~RewriteTemplate() {
  if (marker)
    capi.mlirOperationDestroy(marker);
}

bool RewriteTemplate::capture() {
  for (MlirOperation one = capi.mlirOperationGetNextInBlock(marker); one && !(one == next);
       one = capi.mlirOperationGetNextInBlock(one)) {
    if (one == op)
      kept = static_cast<std::int32_t>(replacement.size());
    replacement.push_back(one);
  }
  capi.mlirOperationDestroy(marker);
  marker = {};
  Sources known;
  for (std::size_t i = 0; i < operands.size(); ++i)
    known.emplace(operands[i].pointer, Source{-1, static_cast<std::int32_t>(i)});
  for (std::size_t number = 0; number < replacement.size(); ++number) {
    if (!(capi.mlirOperationGetLocation(replacement[number]) == location) || !findSources(replacement[number], known))
      return false;
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(replacement[number]); i < count; ++i)
      known[capi.mlirOperationGetResult(replacement[number], i).pointer] = {static_cast<std::int32_t>(number),
                                                                      static_cast<std::int32_t>(i)};
  }
  if (!findOutputs(known))
    return false;
  if (kept >= 0 && (capi.mlirOperationGetFirstRegion(op) ||
                    static_cast<std::size_t>(capi.mlirOperationGetNumOperands(op)) != operands.size()))
    kept = -1;
  isInPlace = replacement.size() == 1 && kept == 0;
  for (const auto &[result, source] : outputs)
    isInPlace = isInPlace && source.op == 0 && source.index == result;
  for (std::size_t i = 0; i < operands.size() && isInPlace; ++i)
    isInPlace = capi.mlirOperationGetOperand(op, static_cast<std::intptr_t>(i)) == operands[i];
  if (kept >= 0)
    compareAttributes();
  return true;
}

// Finds the replacements of the used results. Returns whether a single known value replaces all uses of each result.
bool RewriteTemplate::findOutputs(const Sources &known) {
  for (const Use &use : uses) {
    const auto found = known.find(capi.mlirOperationGetOperand(use.user, use.number).pointer);
    if (found == known.end())
      return false;
    const Source source = found->second;
    if (outputs.empty() || outputs.back().first != use.result)
      outputs.emplace_back(use.result, source);
    else if (outputs.back().second.op != source.op || outputs.back().second.index != source.index)
      return false;
  }
  return true;
}

// Visits the operations and the block arguments inside an operation, always in the same order.
template <typename VisitOperation, typename VisitArgument>
void RewriteTemplate::eachInside(MlirOperation root, const VisitOperation &visitOp, const VisitArgument &visitArgument) const {
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(root); region;
       region = capi.mlirRegionGetNextInOperation(region))
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
        visitArgument(capi.mlirBlockGetArgument(block, i));
      for (MlirOperation one = capi.mlirBlockGetFirstOperation(block); one;
           one = capi.mlirOperationGetNextInBlock(one)) {
        visitOp(one);
        eachInside(one, visitOp, visitArgument);
      }
    }
}

// Returns whether the operations in the regions of an operation use no values from outside.
bool RewriteTemplate::isSelfContained(MlirOperation root) const {
  std::vector<const void *> defined;
  std::vector<MlirOperation> inside;
  eachInside(
      root,
      [&](MlirOperation one) {
        inside.push_back(one);
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(one); i < count; ++i)
          defined.push_back(capi.mlirOperationGetResult(one, i).pointer);
      },
      [&](MlirValue argument) { defined.push_back(argument.pointer); });
  for (MlirOperation one : inside)
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(one); i < count; ++i)
      if (!contains(defined, capi.mlirOperationGetOperand(one, i).pointer))
        return false;
  return true;
}

bool RewriteTemplate::findSources(MlirOperation one, const Sources &known) {
  std::vector<Source> &found = sources.emplace_back();
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(one); i < count; ++i) {
    const auto source = known.find(capi.mlirOperationGetOperand(one, i).pointer);
    if (source == known.end())
      return false;
    found.push_back(source->second);
  }
  return isSelfContained(one);
}

void RewriteTemplate::compareAttributes() {
  const std::vector<MlirNamedAttribute> now = attributesOf(capi, op);
  auto has = [](const std::vector<MlirNamedAttribute> &all, const MlirNamedAttribute &one, bool equal) {
    return std::any_of(all.begin(), all.end(), [&](const MlirNamedAttribute &other) {
      return other.name == one.name && (!equal || other.attribute == one.attribute);
    });
  };
  for (const MlirNamedAttribute &one : now)
    if (!has(attributes, one, true))
      given.push_back(one);
  for (const MlirNamedAttribute &one : attributes)
    if (!has(now, one, false))
      taken.push_back(one.name);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    types.push_back(capi.mlirValueGetType(capi.mlirOperationGetResult(op, i)));
}

void RewriteTemplate::replay(MlirOperation other) const {
  if (isInPlace)
    changeInPlace(other);
  else
    replace(other);
}

void RewriteTemplate::changeInPlace(MlirOperation other) const {
  for (std::size_t i = 0; i < types.size(); ++i)
    capi.mlirValueSetType(capi.mlirOperationGetResult(other, static_cast<std::intptr_t>(i)), types[i]);
  for (MlirIdentifier name : taken)
    capi.mlirOperationRemoveAttributeByName(other, capi.mlirIdentifierStr(name));
  for (const MlirNamedAttribute &one : given)
    capi.mlirOperationSetAttributeByName(other, capi.mlirIdentifierStr(one.name), one.attribute);
}

// Returns a copy of an operation in the replacement; if this is the rewritten operation itself, a changed copy of
// `other`, which may have another name.
MlirOperation RewriteTemplate::copied(std::size_t number, MlirOperation other) const {
  if (static_cast<std::int32_t>(number) != kept)
    return capi.mlirOperationClone(replacement[number]);
  const MlirOperation copy = capi.mlirOperationClone(other);
  changeInPlace(copy);
  return copy;
}

void RewriteTemplate::replace(MlirOperation other) const {
  const MlirBlock block = capi.mlirOperationGetBlock(other);
  const MlirLocation place = capi.mlirOperationGetLocation(other);
  std::vector<MlirOperation> copies;
  auto valueOf = [&](const Source &source) {
    return source.op < 0 ? capi.mlirOperationGetOperand(other, source.index)
                         : capi.mlirOperationGetResult(copies[source.op], source.index);
  };
  for (std::size_t number = 0; number < replacement.size(); ++number) {
    const MlirOperation copy = copied(number, other);
    for (std::size_t i = 0; i < sources[number].size(); ++i)
      capi.mlirOperationSetOperand(copy, static_cast<std::intptr_t>(i), valueOf(sources[number][i]));
    relocate(copy, place, other);
    capi.mlirBlockInsertOwnedOperationBefore(block, other, copy);
    copies.push_back(copy);
  }
  for (const auto &[result, source] : outputs)
    capi.mlirValueReplaceAllUsesOfWith(capi.mlirOperationGetResult(other, result), valueOf(source));
  capi.mlirOperationDestroy(other);
}

// Sets the locations of a copy and of the operations in it to those of the corresponding operations in `other`, which
// the copy replaces. Operations in the copy were either created by the rewrite, at the location of the operation, or
// come from the regions of the operation.
void RewriteTemplate::relocate(MlirOperation copy, MlirLocation place, MlirOperation other) const {
  capi.mlirOperationSetLocation(copy, place);
  std::vector<MlirLocation> made, places;
  auto collect = [&](std::vector<MlirLocation> &found) {
    return std::pair{[&](MlirOperation one) { found.push_back(capi.mlirOperationGetLocation(one)); },
                     [&](MlirValue argument) { found.push_back(capi.mlirValueGetLocation(argument)); }};
  };
  const auto [ofMadeOps, ofMadeArguments] = collect(made);
  eachInside(copy, ofMadeOps, ofMadeArguments);
  const bool isFromRegions =
      std::any_of(made.begin(), made.end(), [&](MlirLocation one) { return !(one == location); });
  if (isFromRegions) {
    const auto [ofOps, ofArguments] = collect(places);
    eachInside(other, ofOps, ofArguments);
  }
  std::size_t number = 0;
  auto next = [&] {
    const std::size_t at = number++;
    return places.size() == made.size() ? places[at] : place;
  };
  eachInside(
      copy, [&](MlirOperation one) { capi.mlirOperationSetLocation(one, next()); },
      [&](MlirValue argument) { capi.mlirBlockArgumentSetLocation(argument, next()); });
}

} // namespace mlir_shard
